"""Types of the compiled scan; all is described in scan_python.py, whose signatures these are."""

from barnabas.protocol.records.kernels.scanned import ProducerBatch, ScanFault

_Buffer = bytes | bytearray | memoryview

def crc32c(data: _Buffer, *, by_tables: bool = False) -> int: ...

class BatchScan:
    position: int
    next_offset: int
    needed_bytes: int
    max_timestamp: int
    max_timestamp_offset: int
    def __init__(
        self,
        base_offset: int,
        *,
        position: int = 0,
        check_crc: bool = True,
        index_interval_bytes: int = 0,
        max_offset_entries: int = 0,
        max_time_entries: int = 0,
        producers_from: int = 0,
        latest_epoch: int = -1,
    ) -> None: ...
    @property
    def fault(self) -> ScanFault | None: ...
    @property
    def first_timestamp(self) -> int | None: ...
    @property
    def offset_entries(self) -> bytearray: ...
    @property
    def time_entries(self) -> bytearray: ...
    @property
    def epochs(self) -> list[tuple[int, int]]: ...
    @property
    def producer_batch_count(self) -> int: ...
    def feed(self, buffer: _Buffer, remaining: int) -> ScanFault | None: ...
    def pass_batch(self, size: int, base_offset: int, last_offset: int, max_timestamp: int) -> None: ...
    def take_producer_batches(self) -> list[ProducerBatch]: ...
