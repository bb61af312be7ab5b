"""Where a consumer stands in one partition, and what it has fetched of it and not read yet."""

from __future__ import annotations

from collections import deque

from barnabas.clients.consumer.fetched import FetchedSlice
from barnabas.clients.errors import ClientError
from barnabas.clients.records import ConsumerRecord
from barnabas.protocol.topic_partition import TopicPartition

NO_POSITION = -1


class AssignedPartition:
    """`position` is the offset of the next record to hand out, `fetch_offset` that of the next one to ask for.

    Both are -1 until they are sought or reset. `epoch` counts seeks: an answer to a question of an older epoch is of no
    more use. `error` waits for the next poll.
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
        self.records: list[ConsumerRecord] = []  # of the batch that is being handed out, from `index` on
        self.index = 0
        self.batch_end = NO_POSITION
        self.high_watermark = -1
        self.fetch_bytes = fetch_bytes
        self.paused = False
        self.held = False  # not to be fetched before a pause is over, or what is buffered is read
        self.queued = False  # in the line of partitions with something to hand out
        self.in_request = False
        self.served = 0  # when it last got data, in answers: who waited longest is asked first
        self.error: ClientError | None = None
        self.failing_since: float | None = None
        self.failures = 0

    @property
    def buffered_bytes(self) -> int:
        """Fetched and not decoded yet."""
        return sum(piece.remaining_bytes for piece in self.slices)

    @property
    def has_data(self) -> bool:
        """Whether there may be something to hand out."""
        return self.index < len(self.records) or bool(self.slices)

    def take(self, count: int) -> list[ConsumerRecord]:
        """Up to `count` records of the decoded batch; the position moves behind them."""
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
        """Stand at `offset` (or NO_POSITION), with nothing fetched. Returns the slices that were let go."""
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
