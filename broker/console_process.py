"""The console as a child process of the broker (console.listener): a page cannot slow the broker down.

It ends with the broker, also with one that is killed: its standard input is a pipe that only the broker holds. When it
ends by itself it is started again, after a delay that grows, at most RESTARTS_MAX times in a row.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from barnabas.broker.startup_error import StartupError
from barnabas.config.properties_file import BadLineError, decode, parse_properties

if TYPE_CHECKING:
    from collections.abc import Mapping

    from barnabas.config import BrokerConfig
    from barnabas.config.listeners import Listener

logger = logging.getLogger(__name__)

RESTARTS_MAX: Final = 5
_FIRST_DELAY_S: Final = 0.5
_STEADY_AFTER_S: Final = 60.0
"""After a run of this length, restarts count from none again."""

_STOP_TIMEOUT_S: Final = 5.0
_PASSWORD_MECHANISMS: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")
"""Those by which people sign in to the console, the preferred one first."""

_MODULES: Final = ("fastavro", "google", "jinja2", "python_multipart", "starlette", "uvicorn")
_ENVIRONMENT_PREFIX: Final = "BARNABAS_"
_KEPT_VARIABLE: Final = "BARNABAS_KERNEL"


class ConsoleProcess:
    """Started once, with a broker that serves, and stopped once. Event loop only."""

    def __init__(self, config: BrokerConfig, ports: Mapping[str, int]) -> None:
        """`ports`: the opened ones, by listener. Raises StartupError if the extra is not installed."""
        missing = [name for name in _MODULES if find_spec(name) is None]
        if missing:
            raise StartupError(
                f"console.listener needs the console, and {', '.join(missing)} is not installed: "
                "pip install 'barnabas[console]', or unset it with --set console.listener="
            )
        self._command = _command(config, ports)
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the process, and watch it."""
        self._task = asyncio.create_task(self._watch(), name="console-process")

    async def stop(self) -> None:
        """Stop the process and wait for its end. Idempotent."""
        if self._task is None:
            return
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        self._task = None
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _STOP_TIMEOUT_S)
        except TimeoutError:
            logger.warning("the console did not stop within %.0f s: killing it", _STOP_TIMEOUT_S)
            process.kill()
            await process.wait()

    async def _watch(self) -> None:
        loop, restarts = asyncio.get_running_loop(), 0
        while True:
            began = loop.time()
            try:
                end = f"ended with code {await self._run()}"
            except OSError as error:
                end = f"cannot be started: {error}"
            if loop.time() - began >= _STEADY_AFTER_S:
                restarts = 0
            if restarts == RESTARTS_MAX:
                logger.error("the console %s, and is not started again after %d restarts", end, restarts)
                return
            delay = _FIRST_DELAY_S * 2**restarts
            restarts += 1
            logger.warning("the console %s: starting it again in %.1f s, restart=%d", end, delay, restarts)
            await asyncio.sleep(delay)

    async def _run(self) -> int:
        """Run it once and return its exit code; its standard output is logged. Raises OSError."""
        process = self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=_environment(os.environ),
            start_new_session=True,  # Ctrl-C is for the broker, which stops the console
        )
        output = process.stdout
        assert output is not None
        while not output.at_eof():
            try:
                line = await output.readline()
            except ValueError:  # longer than the reader's limit, and thrown away by it
                line = b"(a line of the console that is too long)"
            if line:
                logger.info("%s", line.decode(errors="replace").rstrip())
        return await process.wait()


def _command(config: BrokerConfig, ports: Mapping[str, int]) -> list[str]:
    listener = config.console_listener
    assert listener is not None
    properties = config.get("console.command.config")
    opened = config.listeners
    own = opened[0] if properties is not None else _own_listener(config)
    bootstrap = f"{_in_address('localhost' if own.is_every_interface else own.host)}:{ports[own.name]}"
    command = [sys.executable, "-m", "barnabas", "console", "--stop-with-stdin", "--bootstrap", bootstrap]
    command += ["--listen", f"{_in_address(listener.host)}:{listener.port}"]
    if properties is not None:
        command += ["--command-config", str(properties)]
    mechanism = _password_mechanism(config, own)
    if mechanism is not None and not (properties is not None and _has_login(Path(str(properties)))):
        command += ["--sign-in", mechanism]
    return command


def _own_listener(config: BrokerConfig) -> Listener:
    """The listener that the console can use without a file: people sign in there, or nobody does.

    Raises StartupError.
    """
    opened = config.listeners
    by_protocol = {config.security_protocol(each.name): each for each in reversed(opened)}
    with_login = by_protocol.get("SASL_PLAINTEXT")
    if with_login is not None and _password_mechanism(config, with_login) is not None:
        return with_login
    if "PLAINTEXT" not in by_protocol:
        raise StartupError(
            "console.listener: every listener needs TLS, or a login without a password; name a file of client "
            "properties in console.command.config"
        )
    return by_protocol["PLAINTEXT"]


def _password_mechanism(config: BrokerConfig, listener: Listener) -> str | None:
    """The mechanism by which people sign in at a listener; None if it has no login by password."""
    if not config.security_protocol(listener.name).startswith("SASL_"):
        return None
    enabled = config.listener_properties(listener.name).get_list("sasl.enabled.mechanisms")
    return next((each for each in _PASSWORD_MECHANISMS if each in enabled), None)


def _has_login(file: Path) -> bool:
    """Whether client properties have a user: everybody sees what that one may. The console reports a bad file."""
    try:
        entries = parse_properties(decode(file.read_bytes()))
    except (OSError, BadLineError):
        return True
    return any(entry.key == "security.protocol" and entry.value.upper().startswith("SASL_") for entry in entries)


def _in_address(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Without the broker's properties: the console would take its key store for that of a client."""
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith(_ENVIRONMENT_PREFIX) or name == _KEPT_VARIABLE
    }
