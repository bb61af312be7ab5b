"""Install a wheel where there is no compiler, serve, write and read: `python tools/check_wheel.py WHEEL`.

The environment is new and temporary, its PATH has nothing else, and source distributions of dependencies are refused.
Prints one line with the name of the wheel and the seconds from `pip install` until the broker served.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

RECORDS = "one\ntwo\n"


def main(wheel: Path) -> int:
    """Check one wheel, for the interpreter that runs this, and return the exit code."""
    with tempfile.TemporaryDirectory(prefix="barnabas-wheel-") as scratch:
        directory = Path(scratch)
        venv.create(directory / "venv", with_pip=True)
        programs = directory / "venv" / "bin"
        environ = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "LANG"))}
        environ |= {"PATH": str(programs), "HOME": scratch, "CC": str(directory / "no-compiler")}

        def run(*command: str, stdin: str = "") -> str:
            done = subprocess.run(
                [str(programs / command[0]), *command[1:]],
                cwd=directory,
                env=environ,
                input=stdin,
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            return done.stdout

        began = time.monotonic()
        install = ["install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
        run("python", "-m", "pip", *install, str(wheel.resolve()))
        settings = ["listeners=127.0.0.1:0", "metrics.listener=127.0.0.1:0", f"log.dirs={directory / 'data'}"]
        serve = ["serve", "--stop-with-stdin", "--ready-file", "-", "--log-level", "warning"]
        with subprocess.Popen(
            [str(programs / "barnabas"), *serve, *(word for each in settings for word in ("--set", each))],
            cwd=directory,
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as broker:
            assert broker.stdin is not None
            assert broker.stdout is not None
            ready = json.loads(broker.stdout.readline() or "null")
            seconds = time.monotonic() - began
            if ready is None:
                print(f"{wheel.name}: the broker did not start", file=sys.stderr)
                return 1
            bootstrap = ["--bootstrap", f"127.0.0.1:{ready['port']}"]
            run("barnabas", "topic", "create", "checked", *bootstrap)
            run("barnabas", "produce", "checked", *bootstrap, stdin=RECORDS)
            read = run("barnabas", "consume", "checked", "--from-beginning", "--exit-at-end", *bootstrap)
            broker.stdin.close()
            clean = broker.wait() == 0
        version = run("barnabas", "--version").strip()
    problems = [
        problem
        for problem, is_there in (
            ("the compiled kernels are not used", "compiled kernel" not in version),
            ("the records that were read are not those that were written", read != RECORDS),
            ("the broker did not stop cleanly", not clean),
        )
        if is_there
    ]
    for problem in problems:
        print(f"{wheel.name}: {problem}", file=sys.stderr)
    if not problems:
        print(f"{wheel.name}: {version}, installed and serving after {seconds:.1f} s")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
