"""Types of the compiled kernel; the functions are described in kernel_python.py, whose signatures these are."""

from collections.abc import Sequence
from typing import Any, TypeVar

from barnabas.protocol.records.record import Record, RecordsSummary

_Buffer = bytes | bytearray | memoryview
_Row = TypeVar("_Row", bound=tuple[Any, ...])

def check_payload(
    payload: _Buffer, count: int, last_offset_delta: int, base_timestamp: int, contiguous: bool
) -> RecordsSummary: ...
def decode_payload(
    payload: _Buffer,
    count: int,
    base_offset: int,
    last_offset_delta: int,
    base_timestamp: int,
    append_timestamp: int | None,
) -> list[Record]: ...
def decode_fetched(
    payload: _Buffer,
    count: int,
    base_offset: int,
    last_offset_delta: int,
    base_timestamp: int,
    append_timestamp: int | None,
    kind: type[_Row],
    topic: str,
    partition: int,
    timestamp_type: int,
) -> list[_Row]: ...
def find_timestamp(
    payload: _Buffer, count: int, last_offset_delta: int, base_timestamp: int, target: int
) -> tuple[int, int] | None: ...
def append_record(
    target: bytearray,
    limit: int,
    offset_delta: int,
    timestamp_delta: int,
    key: _Buffer | None,
    value: _Buffer | None,
    headers: Sequence[tuple[str, _Buffer | None]],
) -> int: ...
def append_records(
    target: bytearray,
    limit: int,
    offset_delta: int,
    timestamp_delta: int,
    keys: Sequence[_Buffer | None] | None,
    values: Sequence[_Buffer | None],
    begin: int,
    headers: Sequence[tuple[str, _Buffer | None]],
) -> int: ...
def one_record_batch(timestamp: int, key: _Buffer | None, value: _Buffer | None) -> bytearray: ...
def find_batch(buffer: _Buffer, position: int, target_offset: int) -> tuple[int, int, int, int]: ...
def find_lz4_end(frame: _Buffer, position: int, gap: int) -> int: ...
def murmur2(key: _Buffer) -> int: ...
