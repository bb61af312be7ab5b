"""A real `barnabas standby` process, and what a test asks of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from barnabas.broker.standby.control import SOCKET_NAME
from barnabas.clients.broker_process import READY_TIMEOUT_S, SpawnedProcess
from barnabas.commands.failures import CommandFailure
from barnabas.commands.standby.control_client import ask
from tests.support.daemon import Daemon
from tests.support.eventually import eventually
from tests.support.forking import fork_server


class Standby(Daemon):
    """Daemon whose process is a standby of `active`; after `promote` it is an ordinary daemon.

    `arguments` are further options of the command.
    """

    def __init__(
        self,
        directory: Path,
        active: str,
        *arguments: str,
        settings: Mapping[str, object] = {},
        environ: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(directory, settings, environ)
        self.active = active
        self.arguments = arguments

    def command(self) -> list[str]:
        """Return the command line of the next start."""
        serve = super().command()
        options = serve[serve.index("serve") + 1 :]
        return [
            *serve[: serve.index("serve")],
            "standby",
            "--of",
            self.active,
            "--data",
            str(self.data_directory),
            *self.arguments,
            *options,
        ]

    def status(self) -> dict[str, Any]:
        """Return the status."""
        return ask(self.data_directory, {"command": "status"})

    def until(self, state: str = "caught_up", lag: int = 0) -> dict[str, Any]:
        """Wait for a state and return the status."""

        def found() -> dict[str, Any] | None:
            status = self.status()
            return status if status["state"] == state and (status["lag_records"] or 0) <= lag else None

        return eventually(found, what=f"state {state}", timeout_s=30)

    def promote(self, *, planned: bool = False) -> dict[str, Any]:
        """Promote it, and take the address that it serves at."""
        answer = ask(self.data_directory, {"command": "promote", "planned": planned})
        self.await_serving()
        return answer

    def await_serving(self) -> None:
        """Wait until it serves, and take its address."""
        process = self._process
        assert process is not None
        super()._await_ready(process)

    def _spawn(self, command: list[str], environ: Mapping[str, str], log: IO[bytes]) -> SpawnedProcess:
        return fork_server().start(
            command[command.index("standby") :],
            environ=environ,
            cwd=str(self.directory),
            stdout=log.fileno(),
            stderr=log.fileno(),
        )

    def _await_ready(self, process: SpawnedProcess) -> None:
        """Wait until it answers commands."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        while process.poll() is None and time.monotonic() < deadline:
            if (self.data_directory / SOCKET_NAME).exists():
                try:
                    self.status()
                    return
                except CommandFailure:
                    pass  # the socket of a killed process
            time.sleep(0.01)
        raise AssertionError(f"the standby did not start\n{self.log_tail()}")
