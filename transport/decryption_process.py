"""Decryption of private keys and PKCS12 files in a child process, which the kernel ends at a limit of CPU time.

Clients may alter the stores of a running broker. OpenSSL holds the interpreter's lock while it derives keys and checks
RSA keys, and the encrypted parts of a PKCS12 file may contain further parameters that nothing can check before. The
child costs about 0.2 s. Run as a module, this is the child: one JSON request from standard input, one JSON answer.
"""

from __future__ import annotations

import base64
import json
import resource
import signal
import subprocess
import sys
from typing import Any, Final

from barnabas.transport.decryption import IN_PROCESS, CostlyFileError, Pkcs12Contents
from barnabas.transport.key_derivation import CostlyKeyError

CPU_SECONDS: Final = 10
"""The derivations that `key_derivation` admits take this long on a slow machine."""

_WALL_SECONDS: Final = 120.0
"""When the machine is so busy that the child gets a twelfth of a processor."""


class InChildProcess:
    """Decrypts as InProcess does, within `cpu_seconds`."""

    def __init__(self, cpu_seconds: int = CPU_SECONDS) -> None:
        self._cpu_seconds = cpu_seconds

    def decrypt_key(self, pem: bytes, password: str) -> bytes:
        """See Decryption."""
        return _decode(self._run("key", pem, password)["key"])

    def open_pkcs12(self, data: bytes, password: str | None) -> Pkcs12Contents:
        """See Decryption."""
        answer = self._run("pkcs12", data, password)
        key, own = (None if answer[name] is None else _decode(answer[name]) for name in ("key", "own"))
        return Pkcs12Contents(key, own, [_decode(each) for each in answer["others"]])

    def _run(self, kind: str, data: bytes, password: str | None) -> dict[str, Any]:
        request = {"kind": kind, "data": _encode(data), "password": password, "cpu_seconds": self._cpu_seconds}
        command = [sys.executable, "-P", "-m", __name__]
        try:
            done = subprocess.run(
                command, input=json.dumps(request).encode(), capture_output=True, timeout=_WALL_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise CostlyFileError(f"takes more than {_WALL_SECONDS:g} s to decrypt") from None
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            raise CostlyFileError(f"takes more than {self._cpu_seconds} s of CPU time to decrypt")
        if done.returncode:
            # Without its standard error output, which may quote what it was given.
            raise CostlyFileError(f"cannot be decrypted: the process for it ended with the code {done.returncode}")
        answer: dict[str, Any] = json.loads(done.stdout)
        if "costly" in answer:
            raise CostlyKeyError(answer["costly"])
        if "invalid" in answer:
            raise ValueError("damaged, or another password")
        return answer


def main() -> None:
    """Answer one request of InChildProcess."""
    request = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file would contain the password
    resource.setrlimit(resource.RLIMIT_CPU, (request["cpu_seconds"], request["cpu_seconds"] + 1))
    json.dump(_answer(request), sys.stdout)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    data, password = _decode(request["data"]), request["password"]
    try:
        if request["kind"] == "key":
            return {"key": _encode(IN_PROCESS.decrypt_key(data, password))}
        key, own, others = IN_PROCESS.open_pkcs12(data, password)
    except CostlyKeyError as error:
        return {"costly": str(error)}
    except ValueError:
        return {"invalid": True}
    return {
        "key": None if key is None else _encode(key),
        "own": None if own is None else _encode(own),
        "others": [_encode(each) for each in others],
    }


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decode(text: str) -> bytes:
    return base64.b64decode(text)


if __name__ == "__main__":
    main()
