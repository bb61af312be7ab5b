"""A PostgreSQL server with logical replication, on a free port of 127.0.0.1."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.eventually import eventually
from tests.support.free_ports import free_port
from tests.support.program import Program

_DEBIANS = Path("/usr/lib/postgresql")
USER = "postgres"
_SETTINGS = {"wal_level": "logical", "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off"}


@dataclass(frozen=True)
class Postgres:
    """A running server. `programs` is the folder of psql."""

    port: int
    programs: Path
    version: str

    def psql(self) -> list[str]:
        """Return the command of a client that reads statements, and ends at the first error."""
        place = ["-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-d", USER]
        return [str(self.programs / "psql"), "-q", "-X", "-v", "ON_ERROR_STOP=1", *place]

    def execute(self, statements: str) -> str:
        """Run statements, and return their rows as text. Raises CalledProcessError."""
        command = [*self.psql(), "-t", "-A"]
        return subprocess.run(
            command, input=statements, text=True, check=True, timeout=60, stdout=subprocess.PIPE
        ).stdout


@contextmanager
def running() -> Iterator[Postgres]:
    """Run a new server, as the user `nobody` if this is root; without PostgreSQL the test is skipped."""
    programs = _programs()
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="barnabas-postgres-") as name:
        directory = Path(name)
        as_user = []
        if os.getuid() == 0:  # which PostgreSQL refuses to run as
            shutil.chown(directory, "nobody")
            as_user = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
        data = directory / "data"
        subprocess.run(
            [*as_user, str(programs / "initdb"), "-D", str(data), "-U", USER, "-A", "trust", "-N"],
            check=True,
            capture_output=True,
            timeout=120,
            cwd=directory,
        )
        settings = [each for setting, value in _SETTINGS.items() for each in ("-c", f"{setting}={value}")]
        command = [*as_user, str(programs / "postgres"), "-D", str(data), "-p", str(port), *settings]
        version = subprocess.run([str(programs / "postgres"), "-V"], check=True, capture_output=True, text=True)
        server = Postgres(port, programs, version.stdout.split()[2])
        with Program(directory / "server", command) as process:
            ready = [str(programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]

            def serves() -> bool | None:
                assert process.running, "PostgreSQL ended"
                return subprocess.run(ready, timeout=30, check=False).returncode == 0 or None

            eventually(serves, what="PostgreSQL serves")
            yield server


def _programs() -> Path:
    """Return the folder of PostgreSQL's programs, the newest one."""
    debians = sorted(_DEBIANS.glob("*/bin/initdb"), key=lambda path: int(path.parents[1].name))
    found = str(debians[-1]) if debians else shutil.which("initdb")
    if found is None:
        pytest.skip("PostgreSQL is not installed: there is no initdb")
    return Path(found).parent
