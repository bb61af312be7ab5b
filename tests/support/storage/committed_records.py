"""The records of a partition that read_committed consumers see, read from the segment files."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from barnabas.protocol.records import Record, iter_batches, read_records
from barnabas.protocol.records.end_marker import decode_end_marker


def committed_records(log_directory: Path, topic: str, partition: int = 0) -> list[Record]:
    """Return the records outside of open and aborted transactions, in the order of offsets."""
    found: list[Record] = []
    pending: dict[int, list[Record]] = defaultdict(list)
    for path in sorted((log_directory / f"{topic}-{partition}").glob("*.log")):
        for batch in iter_batches(path.read_bytes()):
            batch.ensure_valid()
            records = read_records(batch)
            if batch.is_control:
                ended = pending.pop(batch.producer_id, [])
                if decode_end_marker(records[0].key, records[0].value).is_commit:
                    found += ended
            elif batch.is_transactional:
                pending[batch.producer_id] += records
            else:
                found += records
    return sorted(found, key=lambda record: record.offset)
