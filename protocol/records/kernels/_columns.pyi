"""Types of the compiled builder of columns; all is described in columns_python.py, whose signatures these are."""

from barnabas.protocol.records.kernels.columns_types import Columns, Stop

_Buffer = bytes | bytearray | memoryview

class ColumnBuilder:
    rows: int
    size_bytes: int
    position: int
    start_offset: int
    next_offset: int
    fault: str
    def __init__(self, wanted: int, start_offset: int, end_offset: int) -> None: ...
    def fill(
        self,
        buffer: _Buffer,
        position: int,
        *,
        max_rows: int,
        max_bytes: int,
        check_crcs: bool = True,
        min_timestamp: int | None = None,
        stop_at_transactions: bool = False,
    ) -> Stop: ...
    def skip(self, size: int, last_offset: int) -> None: ...
    def append_payload(
        self,
        payload: _Buffer,
        count: int,
        base_offset: int,
        last_offset_delta: int,
        base_timestamp: int,
        append_timestamp: int | None,
    ) -> None: ...
    def append_record(
        self, offset: int, timestamp: int, timestamp_type: int, key: bytes | None, value: bytes | None
    ) -> None: ...
    def take(self) -> Columns: ...
