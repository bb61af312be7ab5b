"""One pass over the partitions of a fetch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.storage.segment.old_format_slice import OldFormatSlice

if TYPE_CHECKING:
    from barnabas.broker.partitions.fetch_conversion import OldFormatPart
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.storage.files.file_records import FileSlice
    from barnabas.protocol.messages.data.fetch import FetchPartitionResult, FetchTopicResult

_RESPONSE_BYTES: Final = 16
_TOPIC_BYTES: Final = 18
_PARTITION_BYTES: Final = 40
"""Bytes of a response beside its records."""


class FetchAttempt:
    """One pass over the partitions of a request: the results so far and the remaining budget."""

    __slots__ = (
        "budget",
        "committed_only",
        "diverged",
        "failed",
        "has_unread",
        "max_bytes",
        "old_format",
        "partitions",
        "size",
        "taken",
        "topics",
    )

    def __init__(self, budget: int, *, committed_only: bool) -> None:
        self.committed_only = committed_only
        self.max_bytes = budget
        self.budget = budget
        self.size = 0
        self.failed = False
        """Whether the read of a partition failed."""
        self.has_unread = False
        """Whether a partition was not read: one of UNREAD_ERRORS."""
        self.diverged = False
        """Whether the log of a client diverges from a partition's."""
        self.topics: list[FetchTopicResult] = []
        self.partitions: list[Partition] = []
        """Those that were read."""
        self.taken: list[tuple[Partition, int, FetchPartitionResult]] = []
        """Partition, offset and result of each partition with records."""
        self.old_format: list[OldFormatPart] = []
        """Parts that must be converted before they are sent."""

    def take(
        self, partition: Partition, offset: int, result: FetchPartitionResult, records: FileSlice | OldFormatSlice
    ) -> None:
        """Subtract the records' bytes from the budget, which only the first batch may exceed."""
        size = records.size
        self.size += size
        self.budget = max(0, self.budget - size)
        self.taken.append((partition, offset, result))
        if isinstance(records, OldFormatSlice):
            from barnabas.broker.partitions.fetch_conversion import OldFormatPart  # here: few logs have old formats

            self.old_format.append(OldFormatPart(result, partition.log, offset, records))

    def missing_bytes(self, min_bytes: int) -> int:
        """Return how many bytes of records the request waits for; not positive if it has enough."""
        return min(min_bytes, self.max_bytes) - self.size

    def convert_old_formats(self) -> None:
        """Convert parts in old message formats, within the limit of the request."""
        if self.old_format:
            from barnabas.broker.partitions.fetch_conversion import convert_parts

            parts, self.old_format = self.old_format, []
            convert_parts(parts, self.max_bytes - self.size + sum(part.records.size for part in parts))

    @property
    def response_bytes(self) -> int:
        """Size of the response, as a quota counts it: exact for versions with topic ids, of records without errors."""
        records = sum([result.records.size for _, _, result in self.taken])
        partitions = sum([len(topic.partitions) for topic in self.topics])
        return _RESPONSE_BYTES + len(self.topics) * _TOPIC_BYTES + partitions * _PARTITION_BYTES + records

    @property
    def has_later_segments(self) -> bool:
        """Whether records were found in a segment that is not the last of its log."""
        return any(offset < partition.log.segments[-1].base_offset for partition, offset, _ in self.taken)
