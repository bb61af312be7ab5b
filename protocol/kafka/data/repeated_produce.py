"""Cache of produce request shapes: requests of one connection that differ in correlation id and records only.

    frame   := head | int32 correlation_id | middle | size of records | records | tail
    head    api_key and api_version, 4 bytes
    middle  the rest of the header, acks, timeout, one topic, one partition
    size    int32; versions from 9 on: unsigned varint of size + 1
    tail    nothing; versions from 9 on: three empty lists of tagged fields, 3 zero bytes

Nearly all requests of a producer repeat like this, and comparing one with a cached shape costs a fraction of decoding
and encoding. There is no second parser: a shape is learned from a request that codec.py and produce.py decoded, and
checked by decoding its head and middle a second time around a single byte of records, which shows that they contain
everything but the records. The response is likewise a copy of the encoder's, with three numbers replaced. A request
that differs in any other byte does not match and is decoded.

Plain Python is fast enough: one struct call cuts the frame, and bytes are compared as a whole.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final, Protocol

from barnabas.protocol.errors import BrokerError, DecodeError, ErrorCode
from barnabas.protocol.framing import FrameError
from barnabas.protocol.kafka import codec
from barnabas.protocol.kafka.codec import RequestHeader
from barnabas.protocol.kafka.hot_fields import INT32, read_unsigned, unsigned
from barnabas.protocol.kafka.pieces import Piece
from barnabas.protocol.messages.api_key import ApiKey
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
"""Pairs of API version and length of `middle` per connection; a request is compared with each."""

SHAPES_MAX: Final = 256
"""Shapes (roughly: partitions) per connection; a connection with more is not worth caching."""

MIDDLE_BYTES_MAX: Final = 1024
"""Enough for the longest topic name and any sensible client id; bounds the memory of one connection's cache."""

_HEAD_SIZE: Final = 4
_MIDDLE_POSITION: Final = 8
_NO_TAGS_THRICE: Final = bytes(3)
_PROBE: Final = b"\xff"
_MARKS: Final = (0x5A5B_5C5D_5E5F_6061, 0x6263_6465_6667_6869, 0x6A6B_6C6D_6E6F_7071)
"""Base offset, timestamp and log start offset in a sample response, to find their positions in the encoded bytes."""
_NO_PARTS: Final[Sequence[Piece]] = ()


class AppendedRecords(Protocol):
    """The numbers of a successful append that a response contains."""

    @property
    def base_offset(self) -> int:
        """Offset of the first record."""
        ...

    @property
    def log_append_time_ms(self) -> int:
        """Append time of the batch; -1 under CreateTime."""
        ...

    @property
    def log_start_offset(self) -> int:
        """The log's start offset."""
        ...


class ProduceShape:
    """One version, topic and partition of one connection: the decoded request and a template of its response."""

    __slots__ = ("_after", "_before", "_has_log_start", "_header", "_pack", "_size", "api", "client_id", "request")

    def __init__(self, header: RequestHeader, request: ProduceRequest) -> None:
        """`request` has no records, and is never changed."""
        self._header = header
        self.request = request
        self.api = int(ApiKey.PRODUCE)
        self.client_id = header.client_id
        topic = request.topics[0]
        result = ProducePartitionResult(topic.partitions[0].partition, ErrorCode.NONE, None, *_MARKS)
        response = ProduceResponse([ProduceTopicResult(topic.name, [result], topic.topic_id)])
        encoded, _ = codec.encode_response(header, response)
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
        """Return the header of a request of this shape, without its frame."""
        return self._header._replace(correlation_id=correlation_id)

    def encode_response(
        self, correlation_id: int, response: AppendedRecords | ProduceResponse
    ) -> tuple[bytes, Sequence[Piece]]:
        """Return the response frame: from the template for appended records, by the encoder for anything else."""
        if type(response) is ProduceResponse:
            return codec.encode_response(self.header(correlation_id), response)
        appended: Any = response
        if self._has_log_start:
            frame = self._pack(
                self._size,
                correlation_id,
                self._before,
                appended.base_offset,
                appended.log_append_time_ms,
                appended.log_start_offset,
                self._after,
            )
        else:
            frame = self._pack(
                self._size, correlation_id, self._before, appended.base_offset, appended.log_append_time_ms, self._after
            )
        return frame, _NO_PARTS


class _Layout:
    """The shapes with the same API version and the same length of `middle`."""

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

    def match(self, frame: memoryview) -> tuple[ProduceShape, int, memoryview] | None:
        """Match `frame` (without its size field) with the cached shapes.

        Returns the shape, the correlation id and the records, a view of `frame`; None where it has to be decoded.
        """
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
                        return None  # the decoder raises the error
                size -= 1
            if size <= 0 or position + size != end:
                return None
            return shape, correlation_id, frame[position:end]
        return None

    def learn(self, header: RequestHeader, frame: memoryview, request: ProduceRequest) -> bool:
        """Cache the shape of a decoded request if it is plain. Returns False where there are too many shapes."""
        found = _middle_and_request(header, frame, request)
        if found is None:
            return True
        middle, shaped = found
        head = bytes(frame[:_HEAD_SIZE])
        layout = next((one for one in self._layouts if one.head == head and one.middle_size == len(middle)), None)
        if self._count >= SHAPES_MAX or (layout is None and len(self._layouts) >= LAYOUTS_MAX):
            return False
        if layout is None:
            layout = _Layout(head, len(middle), is_flexible=_is_flexible(header))
            self._layouts.append(layout)
        layout.shapes[middle] = ProduceShape(header.without_frame(), shaped)
        self._count += 1
        return True


def _middle_and_request(
    header: RequestHeader, frame: memoryview, request: ProduceRequest
) -> tuple[bytes, ProduceRequest] | None:
    """Return the `middle` of `frame`, and `request` without records; None where the request is not plain.

    Plain: one partition, acks other than 0, sizes in their shortest form, no tagged fields.
    """
    if request.acks == ACKS_NONE or len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
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
        probed_header = codec.read_request(again)
        probed = codec.decode_body(probed_header)
    except (BrokerError, FrameError):
        return None  # bytes follow the records, or their size is not in its shortest form
    expected = ProduceRequest(
        request.acks,
        request.timeout_ms,
        [ProduceTopic(topic.name, [ProducePartition(entry.partition, memoryview(_PROBE))], topic.topic_id)],
        request.transactional_id,
        request.takes_zstd,
        request.adds_partitions,
        request.knows_abortable,
    )
    if probed != expected or probed_header.without_frame() != header.without_frame():
        return None
    forget_records(expected)
    return bytes(again[_MIDDLE_POSITION:start]), expected


def _is_flexible(header: RequestHeader) -> bool:
    return header.route is not None and header.route.is_flexible
