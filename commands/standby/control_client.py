"""One command to the standby that runs on a directory of this machine, through its control socket."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any, Final

from barnabas.broker.standby.control import SOCKET_NAME, short_path
from barnabas.commands.failures import CommandFailure

_TIMEOUT_S: Final = 120.0
"""Longer than a planned switch may take."""


def ask(directory: Path, command: dict[str, Any]) -> dict[str, Any]:
    """Send a command and return its answer. Raises CommandFailure with the standby's error, or without a standby."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection, short_path(directory) as path:
            connection.settimeout(_TIMEOUT_S)
            connection.connect(path)
            connection.sendall(json.dumps(command).encode() + b"\n")
            with connection.makefile("rb") as answers:
                line = answers.readline()
    except (FileNotFoundError, ConnectionRefusedError) as error:
        raise CommandFailure(
            f"no standby runs on {directory} ({SOCKET_NAME}: {error.strerror}): start one with `barnabas standby "
            "--of HOST:PORT --data DIR`"
        ) from error
    except OSError as error:
        raise CommandFailure(f"the standby on {directory} does not answer: {error}") from error
    if not line:
        raise CommandFailure(f"the standby on {directory} ended before it answered: see its log")
    answer: dict[str, Any] = json.loads(line)
    if answer.get("error") is not None and "state" not in answer:
        raise CommandFailure(str(answer["error"]))
    return answer
