"""Types of the compiled append to a partition."""

from typing import TypedDict

from barnabas.broker.partitions.partition import Partition
from barnabas.broker.storage.log.append import TransactionEnd

class _Appended(TypedDict):
    base_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    size_bytes: int
    record_count: int
    flush_due: bool
    is_duplicate: bool
    opens_transaction: bool

def append(partition: Partition, records: memoryview, in_transaction: bool, now_ms: int) -> _Appended | None: ...
def append_commits(
    partitions: list[Partition | None], end: TransactionEnd, marker_batch: bytearray, timestamp: int
) -> list[int]: ...
