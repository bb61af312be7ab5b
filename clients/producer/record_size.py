"""Size of a record in the producer's buffer, with a check that it consists of bytes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from operator import add

from barnabas.protocol.records.builder import Buffer

RECORD_FRAMING_BYTES = 36
"""Upper bound of the batch format's bytes around one record's key, value and headers."""

HeaderList = Sequence[tuple[str, Buffer | None]]


def record_size(key: Buffer | None, value: Buffer | None, headers: HeaderList) -> int:
    """Size of key, value and headers. Raises TypeError for a value that is not bytes."""
    size = 0
    if value is not None:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise TypeError(f"value must be bytes or None, not {type(value).__name__}: encode it first")
        size += len(value)
    if key is not None:
        if not isinstance(key, (bytes, bytearray, memoryview)):
            raise TypeError(f"key must be bytes or None, not {type(key).__name__}: encode it first")
        size += len(key)
    if headers:
        for name, content in headers:
            if not isinstance(name, str):
                raise TypeError(f"a header's name must be str, not {type(name).__name__}")
            if content is not None and not isinstance(content, (bytes, bytearray, memoryview)):
                raise TypeError(f"header {name!r} must be bytes or None, not {type(content).__name__}: encode it first")
            size += len(name) + (0 if content is None else len(content)) + RECORD_FRAMING_BYTES
    return size


def fitting_sizes(
    keys: Sequence[Buffer | None] | None, values: Sequence[Buffer | None], headers: HeaderList, room: int
) -> list[int]:
    """Return the sizes of the first record, of the first two, and so on to those that fill `room` bytes.

    The first record is among them, however large it is. `keys` None: without keys. Raises TypeError.
    """
    around = record_size(None, None, headers)
    first = around + record_size(None if keys is None else keys[0], values[0], ())
    # Mostly as many as fit, because records are alike. The fewest Python calls for a record are what counts here.
    guess = room // max(1, first) + 2
    contents = _lengths(values[:guess], _value_size)
    if keys is not None:
        contents = map(add, contents, _lengths(keys[:guess], _key_size))
    sizes = list(accumulate(contents if not around else map(around.__add__, contents)))
    return sizes[: max(1, bisect_right(sizes, room))]


def _key_size(key: Buffer | None) -> int:
    return record_size(key, None, ())


def _value_size(value: Buffer | None) -> int:
    return record_size(None, value, ())


def _lengths(contents: Sequence[Buffer | None], size_of: Callable[[Buffer | None], int]) -> Iterable[int]:
    are_bytes = set(map(type, contents)) == {bytes}
    return map(len, contents) if are_bytes else map(size_of, contents)  # type: ignore[arg-type]
