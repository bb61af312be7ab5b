"""ClientApi: the two tables of an API and the versions that this client speaks, and frames of requests.

    request frame  int32 size | int16 api key | int16 version | int32 correlation id | string client id |
                   tagged fields (flexible versions) | body
    answer         int32 size | int32 correlation id | tagged fields (flexible versions) | body

An answer to ApiVersions has no tagged fields before its body, because a client reads it before it knows the broker.
Source: Kafka's RequestHeader.json, ResponseHeader.json and ApiMessageType.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.kafka.schema import Message
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.primitives import Reader
from barnabas.protocol.wire.structures import MAX_ANSWER_ITEMS, Struct

_HEADER = struct.Struct(">ihhih")
_SIZE_PREFIX: Final = 4
_NO_TAGS: Final = b"\x00"

VersionRanges = Mapping[int, tuple[int, int]]
"""The versions that a broker serves, lowest and highest, by API key."""


class ClientApi(NamedTuple):
    """One API, spoken from version `lowest` to `highest`."""

    key: ApiKey
    lowest: int
    highest: int
    request: Message | type[Struct]
    answer: Message | type[Struct]

    def version_at(self, served: VersionRanges, highest: int | None = None) -> int | None:
        """Return the highest version that both sides have, None without one. `highest` lowers this side's limit."""
        low, high = served.get(self.key, (0, -1))
        version = min(high, self.highest if highest is None else min(self.highest, highest))
        return version if version >= max(low, self.lowest) else None

    def frame(self, version: int, correlation_id: int, client_id: str, request: Any) -> bytes:
        """Return a request as a whole frame."""
        tags = _NO_TAGS if version >= self.request.flexible_from else b""
        client = client_id.encode()
        table = self.request
        body = tags + (table.write(version, request) if isinstance(table, Message) else request.encode(version))
        size = _HEADER.size - _SIZE_PREFIX + len(client) + len(body)
        return _HEADER.pack(size, self.key, version, correlation_id, len(client)) + client + body

    def read(self, version: int, answer: memoryview) -> Any:
        """Return the value of an answer, which is given without its size and correlation id. Raises DecodeError."""
        if version >= self.answer.flexible_from and self.key is not ApiKey.API_VERSIONS:
            header = Reader(answer)
            header.tagged_fields()
            answer = answer[header.position :]
        table = self.answer
        try:
            if isinstance(table, Message):
                return table.read(version, answer, MAX_ANSWER_ITEMS)
            return table.decode(version, answer, MAX_ANSWER_ITEMS)
        except DecodeError as error:
            raise DecodeError(f"{self.key.label}: {error}") from None
