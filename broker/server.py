"""`barnabas serve`: one node in this process, from its configuration to its exit code.

SIGTERM and SIGINT start a clean shutdown: current requests finish, logs are flushed and checkpointed, the
clean-shutdown marker is written, and the exit code is 0. A second signal ends the process immediately; the next start
then recovers. Signals after the stop change nothing. Exit code 1 means that the broker could not start, or could not
stop cleanly.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from typing import TYPE_CHECKING

import uvloop

from barnabas.broker.node import Node
from barnabas.broker.ready_file import remove_ready_file, write_ready_file
from barnabas.broker.service_manager import READY, STOPPING, notify
from barnabas.broker.startup_error import StartupError
from barnabas.broker.storage.services.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from barnabas.broker.console_process import ConsoleProcess
    from barnabas.broker.storage.log_manager import LogManager
    from barnabas.config import BrokerConfig

logger = logging.getLogger(__name__)

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run(config: BrokerConfig, ready_file: Path | None = None) -> int:
    """Serve until a signal and return the exit code. Raises StartupError, whose text is for the operator."""
    for warning in config.warnings:
        logger.warning("%s", warning)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        code = runner.run(_serve(config, ready_file))
        ignore_signals(runner.get_loop())
        return code


async def _serve(config: BrokerConfig, ready_file: Path | None) -> int:
    stop = stop_by_signals()
    if config.get_list("standby.bootstrap.servers"):
        from barnabas.broker.standby.asking import ensure_not_replaced  # here: few brokers have a standby

        await ensure_not_replaced(config)
    return await serve_until(stop, config, ready_file)


def stop_by_signals() -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set; the second signal ends the process."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, _on_signal, number, stop)
    return stop


def ignore_signals(loop: asyncio.AbstractEventLoop) -> None:
    """Ignore the signals of `stop_by_signals` from now on: one during the exit would replace the exit code.

    Only for a process that is about to exit: programs that it starts afterwards would ignore them, too.
    """
    for number in _STOP_SIGNALS:
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_IGN)


async def serve_until(
    stop: asyncio.Event,
    config: BrokerConfig,
    ready_file: Path | None,
    on_ready: Callable[[Node], None] = lambda _: None,
    *,
    loaded: LogManager | None = None,
) -> int:
    """Serve until `stop` is set, and return the exit code; see Node for `loaded`. Raises StartupError."""
    started = time.monotonic()
    node = Node(config, asyncio.get_running_loop(), SystemClock(), loaded)
    await node.start()
    console: ConsoleProcess | None = None
    try:
        if config.console_listener is not None:
            from barnabas.broker.console_process import ConsoleProcess  # here: few brokers have a console

            console = ConsoleProcess(config, node.ports)
            console.start()
        if ready_file is not None:
            write_ready_file(
                ready_file,
                host=config.listeners[0].host or "127.0.0.1",
                ports=node.ports,
                metrics_port=node.metrics_port,
                log_dirs=config.log_dirs,
            )
        notify(READY, f"serving, port {node.port}")
        logger.info(
            "ready, seconds=%.3f port=%d metrics_port=%s", time.monotonic() - started, node.port, node.metrics_port
        )
        on_ready(node)
        await _first_of(stop, node.failed, node.retired)
    finally:
        notify(STOPPING, "flushing the logs")
        if console is not None:
            await console.stop()
        clean = await node.stop()
        if ready_file is not None:
            remove_ready_file(ready_file)
    logger.info("stopped, clean=%s", clean)
    return 0 if clean and not node.failed.is_set() else 1


async def _first_of(*events: asyncio.Event) -> None:
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()


def _on_signal(number: signal.Signals, stop: asyncio.Event) -> None:
    if stop.is_set():
        logger.warning("second signal (%s): exiting immediately, the next start recovers", number.name)
        os._exit(128 + number)
    logger.info("stopping, signal=%s", number.name)
    stop.set()


__all__ = ["StartupError", "ignore_signals", "run", "serve_until", "stop_by_signals"]
