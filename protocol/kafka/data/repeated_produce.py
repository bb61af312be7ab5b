"""Produce requests that repeat: they differ from an earlier one of their connection in correlation id and records only.

    frame   := head | int32 correlation_id | middle | size of records | records | tail
    head    api_key and api_version, 4 bytes
    middle  the rest of the header, acks, timeout, one topic, one partition
    size    int32; versions from 9 on: unsigned varint of size + 1
    tail    nothing; versions from 9 on: three times no tagged fields, 3 zero bytes

Nearly all requests of a producer look like that, and decoding and answering one costs several times the comparison
with what is known. Nothing is read by other rules here: the same bytes have the same meaning, and which meaning that is
was found by the decoder (dialect.py, produce.py), from the first request and once more from its head and middle around
another byte of records, which shows that they hold everything else. The answer is taken from the encoder likewise, and
has three numbers of its own. What is not alike in each byte is not matched, and decoded as ever.

Plain Python is enough: one call of struct cuts a frame, and bytes are compared as a whole.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple, Protocol

from barnabas.protocol.errors import BrokerError, DecodeError, ErrorCode
from barnabas.protocol.framing import FrameError
from barnabas.protocol.kafka import dialect
from barnabas.protocol.kafka.dialect import RequestHeader
from barnabas.protocol.kafka.hot_fields import INT32, read_unsigned, unsigned
from barnabas.protocol.messages.data.produce import (
    ACKS_NONE,
    ProducePartition,
    ProducePartitionResult,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
    ProduceTopicResult,
    forget_records,
)

LAYOUTS_MAX: Final = 4
"""Lengths of `middle` that one connection may have, each of which a request is compared with."""

SHAPES_MAX: Final = 256
"""Partitions, more or less, of one connection; one with more is not worth remembering."""

MIDDLE_BYTES_MAX: Final = 1024
"""Room for the longest topic name and any sensible client id; what one connection can have remembered stays small."""

_HEAD_SIZE: Final = 4
_MIDDLE_POSITION: Final = 8
_NO_TAGS_THRICE: Final = bytes(3)
_PROBE: Final = b"\xff"
_MARKS: Final = (0x5A5B_5C5D_5E5F_6061, 0x6263_6465_6667_6869, 0x6A6B_6C6D_6E6F_7071)
"""Base offset, timestamp and log start offset in the answer that shows where an answer has them."""


class Stored(Protocol):
    """What an answer says of records that were stored."""

    @property
    def base_offset(self) -> int:
        """Of the first record."""
        ...

    @property
    def log_append_time_ms(self) -> int:
        """-1 under CreateTime."""
        ...

    @property
    def log_start_offset(self) -> int:
        """Of the log."""
        ...


class ProduceShape:
    """One topic and partition of one connection: what its requests say, and how they are answered."""

    __slots__ = ("_after", "_before", "_has_log_start", "_header", "_pack", "_size", "acks", "client_id", "request")

    def __init__(self, header: RequestHeader, request: ProduceRequest) -> None:
        """`request` has no records, and is never changed."""
        self._header = header
        self.request = request
        self.acks = request.acks
        self.client_id = header.client_id
        topic = request.topics[0]
        result = ProducePartitionResult(topic.partitions[0].partition, ErrorCode.NONE, None, *_MARKS)
        response = ProduceResponse([ProduceTopicResult(topic.name, [result], topic.topic_id)])
        encoded, _ = dialect.encode_response(header, response)
        marks = struct.pack(">qqq", *_MARKS)
        position = encoded.rfind(marks)
        self._has_log_start = position >= 0
        if position < 0:
            marks = marks[:16]
            position = encoded.rindex(marks)
        self._size = encoded[:4]
        self._before = encoded[_MIDDLE_POSITION:position]
        self._after = encoded[position + len(marks) :]
        numbers = "qqq" if self._has_log_start else "qq"
        self._pack = struct.Struct(f">4si{len(self._before)}s{numbers}{len(self._after)}s").pack

    def header(self, correlation_id: int) -> RequestHeader:
        """The header of a request of this shape, without its frame."""
        return self._header._replace(correlation_id=correlation_id)

    def answer(self, correlation_id: int, stored: Stored) -> bytes:
        """The whole frame that answers a request whose records are stored."""
        if self._has_log_start:
            return self._pack(
                self._size,
                correlation_id,
                self._before,
                stored.base_offset,
                stored.log_append_time_ms,
                stored.log_start_offset,
                self._after,
            )
        return self._pack(
            self._size, correlation_id, self._before, stored.base_offset, stored.log_append_time_ms, self._after
        )


class RepeatedRequest(NamedTuple):
    """A request of a known shape; `records` is a view of its frame."""

    shape: ProduceShape
    correlation_id: int
    records: memoryview


_new_tuple = tuple.__new__


class _Layout:
    """The shapes of one api version and one length of `middle`."""

    __slots__ = ("head", "is_flexible", "middle_size", "shapes", "size_position", "unpack")

    def __init__(self, head: bytes, middle_size: int, *, is_flexible: bool) -> None:
        self.head = head
        self.middle_size = middle_size
        self.is_flexible = is_flexible
        self.size_position = _MIDDLE_POSITION + middle_size
        self.unpack = struct.Struct(f">{_HEAD_SIZE}si{middle_size}s{'B' if is_flexible else 'i'}").unpack_from
        self.shapes: dict[bytes, ProduceShape] = {}


class RepeatedProduce:
    """The shapes of one connection's produce requests."""

    __slots__ = ("_count", "_layouts")

    def __init__(self) -> None:
        self._layouts: list[_Layout] = []
        self._count = 0

    def match(self, frame: memoryview) -> RepeatedRequest | None:
        """`frame` (without its size field) as a request of a known shape; None for every other, which is no error."""
        for layout in self._layouts:
            try:
                head, correlation_id, middle, size = layout.unpack(frame)
            except struct.error:
                continue
            if head != layout.head:
                continue
            shape = layout.shapes.get(middle)
            if shape is None:
                continue
            end = len(frame)
            position = layout.size_position + 4
            if layout.is_flexible:
                position = layout.size_position + 1
                end -= len(_NO_TAGS_THRICE)
                if frame[end:] != _NO_TAGS_THRICE:
                    return None
                if size >= 0x80:
                    try:
                        size, position = read_unsigned(frame, layout.size_position)
                    except (DecodeError, IndexError):
                        return None  # the decoder says why
                size -= 1
            if size <= 0 or position + size != end:
                return None
            request: RepeatedRequest = _new_tuple(RepeatedRequest, (shape, correlation_id, frame[position:end]))
            return request
        return None

    def learn(self, header: RequestHeader, frame: memoryview, request: ProduceRequest) -> bool:
        """Know requests like this one from now on, if it is of the kind. False: there are too many, forget them all."""
        found = _middle_and_request(header, frame, request)
        if found is None:
            return True
        middle, remembered = found
        head = bytes(frame[:_HEAD_SIZE])
        layout = next((one for one in self._layouts if one.head == head and one.middle_size == len(middle)), None)
        if self._count >= SHAPES_MAX or (layout is None and len(self._layouts) >= LAYOUTS_MAX):
            return False
        if layout is None:
            layout = _Layout(head, len(middle), is_flexible=_is_flexible(header))
            self._layouts.append(layout)
        layout.shapes[middle] = ProduceShape(header.without_frame(), remembered)
        self._count += 1
        return True


def _middle_and_request(
    header: RequestHeader, frame: memoryview, request: ProduceRequest
) -> tuple[bytes, ProduceRequest] | None:
    """What of `frame` comes back in the requests like it, and `request` without records; None if it is not plain."""
    if (
        request.acks == ACKS_NONE
        or request.transactional_id is not None
        or len(request.topics) != 1
        or len(request.topics[0].partitions) != 1
    ):
        return None
    topic = request.topics[0]
    (entry,) = topic.partitions
    size = len(entry.records)
    if size <= len(_PROBE):
        return None
    if _is_flexible(header):
        start = len(frame) - len(_NO_TAGS_THRICE) - size - len(unsigned(size + 1))
        end = unsigned(len(_PROBE) + 1) + _PROBE + _NO_TAGS_THRICE
    else:
        start = len(frame) - size - INT32.size
        end = INT32.pack(len(_PROBE)) + _PROBE
    if start > _MIDDLE_POSITION + MIDDLE_BYTES_MAX:
        return None
    again = memoryview(bytes(frame[:start]) + end)
    try:
        probed_header = dialect.read_request(again)
        probed = dialect.decode_body(probed_header)
    except (BrokerError, FrameError):
        return None  # something stands behind the records, or their size is written in more bytes than it needs
    expected = ProduceRequest(
        request.acks,
        request.timeout_ms,
        [ProduceTopic(topic.name, [ProducePartition(entry.partition, memoryview(_PROBE))], topic.topic_id)],
        request.transactional_id,
        request.takes_zstd,
    )
    if probed != expected or probed_header.without_frame() != header.without_frame():
        return None
    forget_records(expected)
    return bytes(again[_MIDDLE_POSITION:start]), expected


def _is_flexible(header: RequestHeader) -> bool:
    return header.route is not None and header.route.is_flexible
