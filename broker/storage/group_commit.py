"""Group-commit flusher: threads that make appends durable for requests that wait for it.

One fdatasync makes all appends to a log since its last sync durable, for any number of requests. Requests that arrive
during a sync of their log share the next one, so the rate of durable acknowledgements grows with the number of clients.
Logs do not wait for each other: as many are synced at the same time as there are threads. A failed sync fails all
requests for that log, whose directory is offline by then.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.log.partition_log import PartitionLog

logger = logging.getLogger(__name__)

FLUSHER_THREAD: Final = "barnabas-log-flusher"
"""First part of the threads' names."""

SYNC_THREADS: Final = 8
"""Syncs at the same time: the file system commits once for those that arrive together. Kafka's request threads, which
sync, are as many. A thread is started when all others are busy, so a broker with one busy partition has one."""

FlushCallback = Callable[[Exception | None], None]
"""Called with None when the records are durable, else with the error."""


class FlushRequest(NamedTuple):
    """Request to make `log` durable below `up_to_offset`, for this number of appends."""

    log: PartitionLog
    up_to_offset: int
    callback: FlushCallback
    appends: int = 1


class FlushCompletion(NamedTuple):
    """A finished request: call `callback(error)`."""

    callback: FlushCallback
    error: Exception | None


class GroupCommitFlusher:
    """Requests are served from `start` to `stop`; call `request` from any thread. The counters are for the metrics."""

    def __init__(self, deliver: Callable[[Sequence[FlushCompletion]], None] | None = None) -> None:
        """`deliver` gets the completions of a sync on one of the threads; the default calls the callbacks there."""
        self.syncs = 0
        self.requests = 0
        self.failures = 0
        self.sync_seconds_total = 0.0
        self._deliver = deliver or _call_all
        self._waiting: dict[PartitionLog, list[FlushRequest]] = {}
        self._due: deque[PartitionLog] = deque()
        """Logs with waiting requests that no thread is syncing."""
        self._syncing: set[PartitionLog] = set()
        self._idle = 0
        self._condition = threading.Condition()
        self._started = False
        self._stopping = False
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Serve requests, also those made before."""
        with self._condition:
            self._started = True
            self._add_threads()

    def stop(self) -> None:
        """Serve the waiting requests and end the threads. Later requests raise RuntimeError."""
        with self._condition:
            self._stopping = True
            self._condition.notify_all()
        for thread in self._threads:
            thread.join()

    def request(self, requests: Sequence[FlushRequest]) -> None:
        """Call each request's `callback(error or None)` once its log is durable below its offset.

        The requests of one call for one log share a sync, so a caller should collect them. Raises RuntimeError after
        `stop`.
        """
        with self._condition:
            if self._stopping:
                raise RuntimeError("the flusher has stopped")
            for request in requests:
                self.requests += request.appends
                waiting = self._waiting.get(request.log)
                if waiting is not None:
                    waiting.append(request)
                    continue
                self._waiting[request.log] = [request]
                if request.log not in self._syncing:
                    self._due.append(request.log)
            self._condition.notify(len(self._due))
            self._add_threads()

    def _add_threads(self) -> None:
        while self._started and len(self._due) > self._idle and len(self._threads) < SYNC_THREADS:
            name = f"{FLUSHER_THREAD}-{len(self._threads)}"
            thread = threading.Thread(target=self._work, name=name, daemon=True)
            self._threads.append(thread)
            self._idle += 1
            thread.start()

    def _work(self) -> None:
        while True:
            with self._condition:
                while not self._due:
                    if self._stopping:
                        return
                    self._condition.wait()
                log = self._due.popleft()
                requests = self._waiting.pop(log)
                self._syncing.add(log)
                self._idle -= 1
            try:
                self._serve(log, requests)
            except Exception:
                logger.exception("a bug in the delivery of a group commit of %s", log.topic_partition)
            with self._condition:
                self._idle += 1
                self._syncing.remove(log)
                if log in self._waiting:
                    self._due.append(log)

    def _serve(self, log: PartitionLog, requests: Sequence[FlushRequest]) -> None:
        error: Exception | None = None
        if log.durable_offset < max([request.up_to_offset for request in requests]):
            error, seconds = _sync(log)
            with self._condition:
                self.syncs += 1
                self.sync_seconds_total += seconds
                self.failures += error is not None
        durable_offset = log.durable_offset
        self._deliver(
            [
                FlushCompletion(callback, None if durable_offset >= up_to_offset else error or _gone(log))
                for _, up_to_offset, callback, _ in requests
            ]
        )


def _sync(log: PartitionLog) -> tuple[Exception | None, float]:
    """Sync all appends to the log so far; return the error, if any, and the seconds."""
    started = time.monotonic()
    error: Exception | None = None
    try:
        log.flush()
    except (StorageError, OSError) as failure:
        level = logging.DEBUG if log.is_retired else logging.ERROR
        logger.log(level, "group commit of %s failed: %s", log.topic_partition, failure)
        error = failure
    except Exception as bug:
        logger.error("a bug in the group commit of %s", log.topic_partition, exc_info=bug)
        error = bug
    return error, time.monotonic() - started


def _gone(log: PartitionLog) -> StorageError:
    return StorageError(log.directory, "the log went offline")


def _call_all(completions: Sequence[FlushCompletion]) -> None:
    for callback, error in completions:
        callback(error)
