"""`barnabas standby`: copies until it is promoted or stopped; promoted, the same process is the broker.

Until then the client listeners are closed: their ports are bound for a moment at the start, so that a port that is
taken is reported then and not at the takeover.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import shlex
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import uvloop

from barnabas.broker.metadata.directories.examine import STANDBY_PROBLEM, examine
from barnabas.broker.metadata.directories.report import BARNABAS
from barnabas.broker.metadata.directories.security import enforced_security
from barnabas.broker.metadata.directories.standby_state import Role, read_state, write_state
from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.network.listening import bind
from barnabas.broker.server import ignore_signals, serve_until, stop_by_signals
from barnabas.broker.service_manager import READY, notify
from barnabas.broker.standby.arbiter import Arbiter
from barnabas.broker.standby.control import ControlServer
from barnabas.broker.standby.fencing import fence_replaced_brokers
from barnabas.broker.standby.preparation import Course, prepare
from barnabas.broker.standby.replica import OtherHistoryError, Replica
from barnabas.broker.standby.status import status_of
from barnabas.broker.standby.takeover import TakeoverError, hand_over
from barnabas.broker.startup_error import StartupError
from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.services.clock import SystemClock
from barnabas.clients.errors import ClientError
from barnabas.protocol.errors import BrokerError

if TYPE_CHECKING:
    from pathlib import Path

    from barnabas.broker.node import Node
    from barnabas.broker.standby.control import Answer
    from barnabas.broker.storage.log_manager import LogManager
    from barnabas.clients.config import ClientConfig
    from barnabas.config import BrokerConfig

logger = logging.getLogger(__name__)

SYSTEM_CLOCK: Final = SystemClock()

_REFUSALS: Final = (TakeoverError, MetadataError, StorageError, ClientError, BrokerError, StartupError, OSError)
"""Why a command fails; the text is for the operator."""


@dataclass(frozen=True, slots=True)
class _Promotion:
    """A takeover that has begun. `served` gets the seconds until clients were accepted."""

    number: int
    began: float
    served: asyncio.Future[float]


def run(config: BrokerConfig, client: ClientConfig, ready_file: Path | None = None) -> int:
    """Copy the broker at `client.bootstrap`, serve after a promotion, and return the exit code.

    `ready_file` is written once this process serves. Raises StartupError, whose text is for the operator.
    """
    gc.enable()  # `serve` leaves it off until the logs are loaded; a standby may wait for its active broker meanwhile
    for warning in config.warnings:
        logger.warning("%s", warning)

    async def standby() -> int:
        return await _StandbyProcess(config, client, ready_file).run()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            code = runner.run(standby())
        except (MetadataError, StorageError, ClientError, BrokerError, OSError) as error:
            raise StartupError(str(error)) from error
        ignore_signals(runner.get_loop())
        return code


class _StandbyProcess:
    """One run of the command. Event loop only."""

    def __init__(self, config: BrokerConfig, client: ClientConfig, ready_file: Path | None) -> None:
        self._config = config
        self._client = client
        self._ready_file = ready_file
        self._stop = stop_by_signals()
        self._replica: Replica | None = None
        self._is_switching = False
        self._promotion: _Promotion | None = None
        self._released: LogManager | None = None
        """The replica's logs, which the broker in this process serves."""
        self._promoted = asyncio.Event()
        self._is_active = False
        self._fencing: asyncio.Task[None] | None = None
        self._arbiter = _arbiter_of(config, client.bootstrap)
        self._automatic: asyncio.Task[bool] | None = None
        """The promotion to which the arbiter has agreed."""

    async def run(self) -> int:
        """Run until a signal. Raises MetadataError, StorageError, ClientError, OSError, StartupError."""
        config, directory = self._config, self._config.metadata_log_dir
        for opened in bind(config.listeners, -1, -1):
            opened.close()
        directory.mkdir(parents=True, exist_ok=True)
        control = ControlServer(directory, self._answer)
        await control.start()
        notify(READY, f"standby of {self._client.bootstrap}")
        try:
            course = await self._unless_stopped(prepare(config, self._client, self._client.bootstrap))
            if course is Course.COPY:
                course = await self._copy_until_promoted()
            return 0 if course is None else await self._serve()
        finally:
            for task in (self._fencing, self._automatic):
                if task is not None:
                    task.cancel()
                    await asyncio.wait([task])
            await control.close()

    async def _unless_stopped(self, work: Any) -> Any:
        """Return the result of a coroutine, None if a signal comes first."""
        task = asyncio.ensure_future(work)
        stopped = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait([task, stopped], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if task.done():
            return task.result()
        task.cancel()
        await asyncio.wait([task])
        return None

    async def _copy_until_promoted(self) -> Course | None:
        """Copy; return SERVE after a promotion, None after a signal."""
        while True:
            replica = self._replica = Replica(self._config, self._client, SYSTEM_CLOCK)
            copying = asyncio.ensure_future(replica.run())
            ends = [asyncio.ensure_future(each.wait()) for each in (self._promoted, self._stop, replica.failed)]
            watching: list[asyncio.Future[None]] = []
            if self._arbiter is not None:
                watching = [asyncio.ensure_future(self._arbiter.watch(replica, self._promote_by_itself))]
            try:
                await asyncio.wait([copying, *ends], return_when=asyncio.FIRST_COMPLETED)
                if self._promoted.is_set():
                    return Course.SERVE
                if copying.done():
                    copying.result()
                elif replica.failed.is_set():
                    raise StartupError("a log directory of the standby has failed: see the log above")
                return None
            except OtherHistoryError:
                logger.warning("the active broker's metadata has another history: copying all of it again")
            finally:
                tasks: list[asyncio.Future[Any]] = [copying, *ends, *watching]
                for each in tasks:
                    each.cancel()
                await asyncio.wait([copying, *watching])
                if self._promoted.is_set() and replica.is_complete_once:
                    self._released = await replica.release()
                else:
                    await replica.close()
                self._replica = None
            self._distrust()

    def _distrust(self) -> None:
        directory = self._config.metadata_log_dir
        write_state(directory, read_state(directory)._replace(is_verified=False))

    async def _serve(self) -> int:
        promotion = self._promotion
        try:
            return await serve_until(self._stop, self._config, self._ready_file, self._ready, loaded=self._released)
        except BaseException as error:
            if promotion is not None and not promotion.served.done():
                promotion.served.set_exception(TakeoverError(f"this process could not serve: {error}"))
                await asyncio.sleep(0)  # the command gets its answer
            raise

    def _ready(self, node: Node) -> None:
        self._is_active = True
        number = read_state(self._config.metadata_log_dir).number
        work = fence_replaced_brokers(self._client, node.cluster_id, number)
        self._fencing = asyncio.get_running_loop().create_task(work)
        promotion = self._promotion
        if promotion is not None:
            seconds = time.monotonic() - promotion.began
            logger.warning("took over, number=%d seconds=%.3f port=%d", promotion.number, seconds, node.port)
            promotion.served.set_result(seconds)

    # -- commands

    async def _answer(self, command: Any) -> Answer:
        name = command.get("command") if isinstance(command, dict) else None
        try:
            if name == "status":
                state = read_state(self._config.metadata_log_dir)
                return status_of(state, self._replica, self._client.bootstrap, is_active=self._is_active)
            if name == "promote":
                return await self._promote(is_planned=command.get("planned") is True)
            return {"error": f"unknown command {name!r}"}
        except _REFUSALS as error:
            return {"error": str(error)}
        except Exception as error:
            logger.exception("a bug: the command %r", name)
            return {"error": f"a bug, see the standby's log: {error!r}"}

    async def _promote(self, *, is_planned: bool) -> Answer:
        replica = self._replica
        if self._is_active or self._promotion is not None:
            raise TakeoverError("this standby has taken over already")
        if replica is None or not replica.is_complete_once:
            raise TakeoverError("not yet: the standby loads its logs, or has never copied the metadata completely")
        if self._is_switching:
            raise TakeoverError("another command is promoting this standby")
        if not is_planned and not replica.is_compared:
            logger.warning("taking over before all records here were compared with the active broker's")

        def ensure_current() -> None:
            if self._replica is not replica:
                raise TakeoverError("the copy was opened again meanwhile: try again")

        self._is_switching = True
        try:
            await asyncio.to_thread(self._ensure_servable)
            ensure_current()
            statuses = replica.partitions()
            lag = sum(each.lag_records or 0 for each in statuses)
            unknown = sum(each.lag_records is None for each in statuses) + len(replica.missing())
            number = replica.number + 1
            began = time.monotonic()
            if is_planned:
                await hand_over(replica, self._client, number, ensure_current=ensure_current)
                lag = unknown = 0
            served: asyncio.Future[float] = asyncio.get_running_loop().create_future()
            async with replica.state_lock:
                ensure_current()
                self._note_promoting(number, is_planned=is_planned)
                replica.is_promoted = True
                self._promotion = _Promotion(number, began, served)
                self._promoted.set()
            seconds = await served
        finally:
            self._is_switching = False
        return {
            "number": number,
            "planned": is_planned,
            "seconds": round(seconds, 3),
            "lag_records": lag,
            "unknown_partitions": unknown,
        }

    def _note_promoting(self, number: int, *, is_planned: bool) -> None:
        directory = self._config.metadata_log_dir
        try:
            write_state(directory, read_state(directory)._replace(role=Role.PROMOTING, number=number))
        except OSError as error:
            if not is_planned:
                raise
            raise TakeoverError(
                f"the takeover cannot be recorded: {error}; the active broker has handed over and stopped. Nothing is "
                "missing here: repair the disk, then promote without --planned"
            ) from error

    def _promote_by_itself(self) -> asyncio.Task[bool]:
        async def promote() -> bool:
            try:
                await self._promote(is_planned=False)
            except _REFUSALS as error:
                logger.error("this standby does not take over: %s", error)
                return False
            except Exception:
                logger.exception("a bug: this standby does not take over")
                return False
            return True

        self._automatic = asyncio.get_running_loop().create_task(promote())
        return self._automatic

    def _ensure_servable(self) -> None:
        """Raise TakeoverError with what would keep a broker from starting on the copy. Blocks."""
        config = self._config
        report = examine(
            config.log_dirs,
            metadata_log_dir=config.metadata_log_dir,
            node_id=config.node_id,
            ignore_security=config.get_bool("ignore.security"),
            enforced=enforced_security(config),
        )
        problems = [
            f"{each.sentence}: {each.remedy}" for each in report.stopping(BARNABAS) if each.code != STANDBY_PROBLEM
        ]
        if problems:
            raise TakeoverError("a broker could not start on this copy: " + "; also: ".join(problems))


def _arbiter_of(config: BrokerConfig, peer: str) -> Arbiter | None:
    text = config.get("standby.arbiter.command")
    if text is None:
        return None
    try:
        command = shlex.split(str(text))
    except ValueError as error:
        raise StartupError(f"standby.arbiter.command={text!r} is no command: {error}") from error
    if not command:
        raise StartupError("standby.arbiter.command is empty: name a command, or leave it unset")
    return Arbiter(command, config.get_int("standby.arbiter.after.ms") / 1000, peer)
