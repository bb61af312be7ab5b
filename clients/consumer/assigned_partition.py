"""An assigned partition of a consumer: its position, and its records that are fetched and not handed out yet."""

from __future__ import annotations

from collections import deque

from barnabas.clients.consumer.fetched import FetchedSlice
from barnabas.clients.errors import ClientError
from barnabas.clients.records import ConsumerRecord
from barnabas.protocol.topic_partition import TopicPartition

NO_POSITION = -1


class AssignedPartition:
    """`position` is the offset of the next record to hand out, `fetch_offset` that of the next one to fetch.

    Both are -1 until a seek or reset. `epoch` counts seeks: a response to a request of an older epoch is ignored.
    `error` is raised by the next read.
    """

    __slots__ = (
        "batch_end",
        "epoch",
        "error",
        "failing_since",
        "failures",
        "fetch_bytes",
        "fetch_offset",
        "held",
        "high_watermark",
        "in_request",
        "index",
        "paused",
        "position",
        "queued",
        "records",
        "served",
        "slices",
        "topic_partition",
    )

    def __init__(self, topic_partition: TopicPartition, fetch_bytes: int) -> None:
        self.topic_partition = topic_partition
        self.position = NO_POSITION
        self.fetch_offset = NO_POSITION
        self.epoch = 0
        self.slices: deque[FetchedSlice] = deque()
        self.records: list[ConsumerRecord] = []  # of the current batch; those from `index` on are still to hand out
        self.index = 0
        self.batch_end = NO_POSITION
        self.high_watermark = -1
        self.fetch_bytes = fetch_bytes
        self.paused = False
        self.held = False  # not fetched until a pause is over, or the buffered records are read
        self.queued = False  # in the queue of partitions with data or an error
        self.in_request = False
        self.served = 0  # number of the response that last had data: the lowest is fetched first
        self.error: ClientError | None = None
        self.failing_since: float | None = None
        self.failures = 0

    @property
    def buffered_bytes(self) -> int:
        """Bytes fetched and not decoded yet."""
        return sum(piece.remaining_bytes for piece in self.slices)

    @property
    def has_data(self) -> bool:
        """Whether there may be records to hand out."""
        return self.index < len(self.records) or bool(self.slices)

    def take(self, count: int) -> list[ConsumerRecord]:
        """Return up to `count` records of the decoded batch and move the position after them."""
        taken = self.records[self.index : self.index + count]
        self.index += len(taken)
        if self.index >= len(self.records):
            self.position = self.batch_end
            self.records = []
            self.index = 0
        elif taken:
            self.position = taken[-1].offset + 1
        return taken

    def move_to(self, offset: int) -> list[FetchedSlice]:
        """Move to `offset` or NO_POSITION, dropping everything fetched. Returns the dropped slices."""
        dropped = list(self.slices)
        self.slices.clear()
        self.records = []
        self.index = 0
        self.position = self.fetch_offset = offset
        self.epoch += 1
        self.held = False
        self.error = None
        self.failing_since = None
        self.failures = 0
        return dropped
