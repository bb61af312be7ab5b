"""Stored messages of format version 0 or 1, converted to version 2 when they are read.

A segment written by a broker before Kafka 0.11 is never rewritten. Readers get batches of version 2, converted in
memory (legacy/up_conversion) from at most MAX_RAW_BYTES of the file, or from one larger message. Kafka's brokers (3.9,
4.3) send these formats as they are stored; converting here means that a client needs to support one format only.

Formats only increase within a log, except in a topic whose message.format.version was lowered. So the first message of
a segment shows whether to expect old formats.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.storage.files.file_records import FileSlice

MAX_RAW_BYTES: Final = 4 * 1024 * 1024
"""Maximum bytes of old messages per read; a larger read is answered in parts."""


class OldFormatSlice:
    """A slice like `FileSlice` that has to be converted by `convert`, off the event loop.

    Converting costs about 10 us per message, and the converted size is known only afterwards: at most `max_bytes`,
    except for a first batch if `at_least_one_batch`.
    """

    __slots__ = ("at_least_one_batch", "max_bytes", "records")

    def __init__(self, records: FileSlice, max_bytes: int, *, at_least_one_batch: bool) -> None:
        self.records = records
        self.max_bytes = max_bytes
        self.at_least_one_batch = at_least_one_batch

    @property
    def size(self) -> int:
        """Size in the file, before the conversion."""
        return self.records.size

    def convert(self, max_bytes: int) -> bytes:
        """Return batches of version 2, up to `max_bytes`. Raises CorruptRecordError, CorruptFileError, OSError."""
        from barnabas.protocol.records.legacy.up_conversion import convert_to_v2  # here: few logs have old formats

        return convert_to_v2(memoryview(self.records.read()), max_bytes, at_least_one_batch=self.at_least_one_batch)

    def read(self) -> bytes:
        """Convert up to the slice's own `max_bytes`."""
        return self.convert(self.max_bytes)
