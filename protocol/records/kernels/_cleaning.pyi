"""Types of the compiled kernel; the methods are described in cleaning_python.py, whose signatures these are."""

from barnabas.protocol.records.kernels.cleaned import (
    AddedBatches,
    AddedRecords,
    FilteredBatches,
    FilteredRecords,
    FilterRules,
)

_Buffer = bytes | bytearray | memoryview

class OffsetTable:
    slots: int
    entries: int
    def __init__(self, memory: memoryview | bytearray, secret: bytes, hash_mask: int = ...) -> None: ...
    def close(self) -> None: ...
    def put(self, key: _Buffer, offset: int) -> None: ...
    def get(self, key: _Buffer) -> int: ...
    def add_batches(self, buffer: _Buffer, size: int, from_offset: int, max_entries: int) -> AddedBatches: ...
    def add_records(
        self,
        payload: _Buffer,
        count: int,
        base_offset: int,
        last_offset_delta: int,
        base_timestamp: int,
        from_offset: int,
        max_entries: int,
    ) -> AddedRecords: ...
    def filter_batches(
        self, buffer: _Buffer, size: int, output: memoryview | bytearray, rules: FilterRules
    ) -> FilteredBatches: ...
    def filter_records(
        self,
        payload: _Buffer,
        count: int,
        base_offset: int,
        last_offset_delta: int,
        base_timestamp: int,
        max_timestamp: int,
        attributes: int,
        is_marker_of_nothing: bool,
        rules: FilterRules,
    ) -> FilteredRecords: ...
