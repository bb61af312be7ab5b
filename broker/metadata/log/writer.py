"""MetadataWriter: the one writer of the metadata log.

A change is appended and synced, then the image is replaced, then listeners are called, in log order and under the
writer's lock: changes never overlap, and records are appended to the image that their plan saw. Synchronous; the daemon
calls it on an executor thread. Reading `image` takes no lock.

A failed append (a full disk) changes nothing: the client gets KAFKA_STORAGE_ERROR, and a later change may succeed.
After a failed sync the content of the disk is unknown: the writer refuses every further change, and the broker must
stop.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.image_builder import ImageBuilder
from barnabas.broker.metadata.log.batches import encode_change
from barnabas.broker.metadata.plan import Plan
from barnabas.broker.metadata.view import ImageListener
from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.services.clock import Clock
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.metadata.records import MetadataRecord

Result = TypeVar("Result")

logger = logging.getLogger(__name__)


class AppendOnlyLog(Protocol):
    """The part of the metadata log that the writer uses."""

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""

    def append(self, batches: bytes, leader_epoch: int) -> None:
        """Append whole batches, all or none. Raises OSError, StorageError or BrokerError."""

    def sync(self) -> None:
        """Make all appended batches durable. Raises OSError or StorageError."""


class MetadataWriter:
    """Owner of the image, which has a `metadata.version`. `leader_epoch` is written into every batch."""

    def __init__(
        self,
        log: AppendOnlyLog,
        image: MetadataImage,
        *,
        leader_epoch: int,
        clock: Clock,
        last_timestamp_ms: int = 0,
    ) -> None:
        """`last_timestamp_ms` is that of the log's last batch."""
        self.image = image
        self.leader_epoch = leader_epoch
        self.failure: str | None = None
        self._is_refusing = False
        """Whether the last append has failed, and has a line in the log."""
        self._log = log
        self._clock = clock
        self._last_timestamp_ms = last_timestamp_ms
        self._lock = threading.Lock()
        self._listeners: list[ImageListener] = []
        self._paused: str | None = None

    def add_listener(self, listener: ImageListener) -> None:
        """Call `listener` after each change from now on."""
        with self._lock:
            self._listeners.append(listener)

    def commit(self, records: Sequence[MetadataRecord]) -> MetadataImage:
        """Append and sync `records`, all or none; return the image with them.

        Raises BrokerError KAFKA_STORAGE_ERROR, and ReplayError for records that do not fit the image.
        """
        with self._lock:
            return self._commit(records)

    def change(self, plan: Callable[[MetadataImage], Plan[Result]]) -> list[Result]:
        """Commit the plan for the current image; return its results. Raises as `commit`."""
        with self._lock:
            planned = plan(self.image)
            self._commit(planned.records)
            return planned.results

    def pause(self, reason: str) -> None:
        """Refuse changes from now on with NOT_CONTROLLER, which clients retry; one that is running is finished."""
        with self._lock:
            self._paused = reason

    def resume(self) -> None:
        """Accept changes again."""
        with self._lock:
            self._paused = None

    def between_changes(self, work: Callable[[], None]) -> None:
        """Do something while no change is made, and none tells its listeners."""
        with self._lock:
            work()

    def cut(self, begin_segment: Callable[[], None]) -> tuple[MetadataImage, int, int]:
        """Begin a segment between two changes; return the image at its start, the epoch and the last timestamp (ms).

        A snapshot of that image replaces exactly the segments before, so the log can be trimmed by whole files.
        Raises BrokerError KAFKA_STORAGE_ERROR after a failed sync, and the errors of `begin_segment`.
        """
        with self._lock:
            if self.failure is not None:
                raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, self.failure)
            begin_segment()
            return self.image, self.leader_epoch, self._last_timestamp_ms

    def _commit(self, records: Sequence[MetadataRecord]) -> MetadataImage:
        before = self.image
        if not records:
            return before
        if self.failure is not None:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, self.failure)
        if self._paused is not None:
            raise BrokerError(ErrorCode.NOT_CONTROLLER, self._paused)
        builder = ImageBuilder(before)
        for record in records:
            builder.apply(record)  # a record that does not fit must not reach the log
        level = before.level
        assert level is not None, "the opening of the log finalized a level"
        base_offset = self._log.end_offset
        timestamp_ms = self._clock.wall_ms()
        batches, end_offset = encode_change(
            records,
            level=level,
            base_offset=base_offset,
            leader_epoch=self.leader_epoch,
            timestamp_ms=timestamp_ms,
        )
        builder.move_to(end_offset)
        self._append(batches, base_offset)
        after = builder.build()
        self.image = after
        self._last_timestamp_ms = timestamp_ms
        for listener in self._listeners:
            listener(before, after)
        return after

    def _append(self, batches: bytes, base_offset: int) -> None:
        try:
            self._log.append(batches, self.leader_epoch)
        except (OSError, StorageError, BrokerError) as error:
            if self._log.end_offset != base_offset:
                self._fail(f"a failed append left a part of itself in the metadata log: {error}")
            level = logging.DEBUG if self._is_refusing else logging.WARNING
            logger.log(level, "metadata is unchanged, appends fail until there is room: %s", error)
            self._is_refusing = True
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"the metadata log cannot be written: {error}") from error
        try:
            self._log.sync()
        except (OSError, StorageError, BrokerError) as error:
            self._fail(f"the metadata log could not be synced: {error}")
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.failure}") from error
        self._is_refusing = False

    def _fail(self, failure: str) -> None:
        self.failure = failure
        logger.error("metadata cannot be changed until the broker starts again: %s", failure)
