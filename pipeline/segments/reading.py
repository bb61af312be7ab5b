"""Reading records from a part of a segment file, in a task.

The file is read in chunks into one reused buffer, small enough that its bytes are still in the CPU cache when the CRC
is computed. After a batch with an implausible size, the index gives the position of the next one.

In the directory of a running broker, retention may delete a segment after the driver planned to read it. It is read as
long as its file exists as `.deleted` (file.delete.delay.ms, a minute by default); after that it is data loss.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from barnabas.broker.storage.files.file_names import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, FileKind, parse_file_name
from barnabas.broker.storage.index.transaction_index import AbortedTxn
from barnabas.pipeline.reading.batches import BatchReader, ReadRules
from barnabas.pipeline.reading.offsets import OffsetRange
from barnabas.pipeline.reading.options import ReadOptions
from barnabas.pipeline.reading.ranges import data_loss
from barnabas.pipeline.segments.files import FileSystem, OpenFile, file_system, open_even_deleted
from barnabas.pipeline.segments.index import SegmentFile
from barnabas.protocol.messages.data.fetch import AbortedTransaction
from barnabas.protocol.records.layout import LOG_OVERHEAD

CHUNK_BYTES = 256 * 1024


class SegmentPart(InputPartition):
    """Bytes [position, end_position) of a `.log` file, and the range of offsets to read from them.

    `root` is the user's path, which determines the file system of `path`. The part contains offsets in
    [base_offset, end_offset). `tail_fault` describes damage that the driver found after the part; `aborted` are the
    transactions to leave out.
    """

    def __init__(
        self,
        root: str,
        path: str,
        base_offset: int,
        end_offset: int,
        part: OffsetRange,
        position: int,
        end_position: int,
        tail_fault: str | None,
    ) -> None:
        super().__init__((path, position, end_position))
        self.root = root
        self.path = path
        self.base_offset = base_offset
        self.end_offset = end_offset
        self.part = part
        self.position = position
        self.end_position = end_position
        self.tail_fault = tail_fault
        self.aborted: tuple[AbortedTransaction, ...] = ()

    def with_aborted(self, transactions: Iterable[AbortedTxn]) -> SegmentPart:
        """Set the aborted transactions that overlap this part, and return it.

        One that ended before it is left out, because its producer may have committed records since.
        """
        least = max(self.base_offset, self.part.start)
        self.aborted = tuple(
            AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
            for each in transactions
            if each.last_offset >= least and each.first_offset < self.part.end
        )
        return self


def read_from_segment(options: ReadOptions, rules: ReadRules, part: SegmentPart) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one part. Raises CorruptLogError (mode strict), DataLossError (file gone), OSError."""
    system, _ = file_system(part.root)
    reader = BatchReader(rules, part.part)
    reader.aborted(part.aborted)
    try:
        file = open_even_deleted(system, part.path)
        try:
            yield from _read(system, file, reader, part)
        finally:
            file.close()
    except FileNotFoundError:  # an object store may say so only when it is asked for bytes
        yield from reader.finish()
        _tell_what_is_gone(options, reader, part)
        return
    if part.tail_fault is not None:
        yield from reader.damaged(part.tail_fault)
    yield from reader.finish()


def _tell_what_is_gone(options: ReadOptions, reader: BatchReader, part: SegmentPart) -> None:
    """Raise DataLossError, or warn."""
    first = max(part.base_offset, reader.next_offset)
    data_loss(
        options,
        f"{part.part.topic_partition}: {part.end_offset - first} offsets, {first} to {part.end_offset - 1}, are gone: "
        f"{part.path}, of which {part.end_position - part.position} bytes were to be read, was deleted after the read "
        "was planned",
    )


def _read(system: FileSystem, file: OpenFile, reader: BatchReader, part: SegmentPart) -> Iterator[pa.RecordBatch]:
    position, kept = part.position, 0  # in the file; bytes from there on that are in the buffer already
    buffer = memoryview(bytearray(min(CHUNK_BYTES, max(part.end_position - position, 1))))
    while position < part.end_position:
        room = min(len(buffer), part.end_position - position)
        filled = kept + file.read_into(buffer[kept:room], position + kept)
        data = buffer[:filled]
        left = yield from reader.read(data, part.path, position)
        if reader.at_end:
            return
        position += left
        if reader.is_lost:
            later = _next_known_batch(system, part, position)
            if later is None:
                return
            position, kept = later, 0
            continue
        kept = filled - left
        if position + kept >= part.end_position or filled < room:
            if kept:
                yield from reader.damaged(
                    f"{part.path}, position {position}: a batch is cut short, {kept} bytes are left"
                )
            return
        if left:
            buffer[:kept] = buffer[left:filled]
        elif filled == len(buffer):
            size = int.from_bytes(data[8:12], "big") + LOG_OVERHEAD
            larger = memoryview(bytearray(max(2 * len(buffer), min(size, part.end_position - position))))
            larger[:kept] = data
            buffer = larger


def _next_known_batch(system: FileSystem, part: SegmentPart, position: int) -> int | None:
    """Return the position of the next batch after `position` in the part, by the index, or None."""
    name = posixpath.basename(part.path).replace(LOG_SUFFIX, OFFSET_INDEX_SUFFIX)
    try:
        index = system.entry(posixpath.join(posixpath.dirname(part.path), name))
    except FileNotFoundError:
        return None
    parsed = parse_file_name(posixpath.basename(part.path))
    base_offset = part.base_offset if parsed is None else parsed.offset
    segment = SegmentFile(system, part.path, base_offset, part.end_position, {FileKind.OFFSET_INDEX: index})
    return segment.first_entry_behind(position)
