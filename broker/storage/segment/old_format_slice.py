"""Stored bytes that hold messages of format version 0 or 1, which are converted before anybody gets them.

A segment that a broker before Kafka 0.11 wrote is never rewritten; whoever reads from it gets batches of version 2
(legacy/up_conversion), made in memory from at most MAX_RAW_BYTES of the file, or from one larger message.
Formats only rise within a log, but for a topic whose message.format.version was lowered; so the first message of a
segment tells what must be looked for in it.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.storage.files.file_records import FileSlice
from barnabas.protocol.records.legacy.up_conversion import convert_to_v2

MAX_RAW_BYTES: Final = 4 * 1024 * 1024
"""A larger read of old messages is answered in parts."""


class OldFormatSlice:
    """A slice as `FileSlice`, to be converted by `convert`, which is no work for the loop.

    It costs about 10 us a message. `size` is that in the file; what is converted has at most `max_bytes`, but for a
    first batch if `at_least_one_batch`.
    """

    __slots__ = ("at_least_one_batch", "max_bytes", "records")

    def __init__(self, records: FileSlice, max_bytes: int, *, at_least_one_batch: bool) -> None:
        self.records = records
        self.max_bytes = max_bytes
        self.at_least_one_batch = at_least_one_batch

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return self.records.size

    def convert(self, max_bytes: int) -> bytes:
        """Batches of version 2, at most `max_bytes` as above. Raises CorruptRecordError, CorruptFileError, OSError."""
        return convert_to_v2(memoryview(self.records.read()), max_bytes, at_least_one_batch=self.at_least_one_batch)

    def read(self) -> bytes:
        """As `convert`, up to the limit that the reader gave."""
        return self.convert(self.max_bytes)
