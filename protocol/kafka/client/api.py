"""ClientApi: the two messages of an API and the versions that this client speaks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.kafka.client_codec import after_tags, request_frame
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.structures import MAX_ANSWER_ITEMS, Request, Struct

VersionRanges = Mapping[int, tuple[int, int]]
"""The versions that a broker serves, lowest and highest, by API key."""


class ClientApi(NamedTuple):
    """One API, spoken from version `lowest` to `highest`."""

    key: ApiKey
    lowest: int
    highest: int
    request: type[Struct]
    answer: type[Struct]

    def version_at(self, served: VersionRanges, highest: int | None = None) -> int | None:
        """Return the highest version that both sides have, None without one. `highest` lowers this side's limit."""
        low, high = served.get(self.key, (0, -1))
        version = min(high, self.highest if highest is None else min(self.highest, highest))
        return version if version >= max(low, self.lowest) else None

    def frame(self, version: int, correlation_id: int, client_id: str, request: Request[Any]) -> bytes:
        """Return a request as a whole frame."""
        return request_frame(version, correlation_id, client_id.encode(), request)

    def read(self, version: int, answer: memoryview) -> Any:
        """Return the value of an answer, which is given without its size and correlation id. Raises DecodeError."""
        if version >= self.answer.flexible_from and self.key is not ApiKey.API_VERSIONS:
            answer = after_tags(answer)
        try:
            return self.answer.decode(version, answer, MAX_ANSWER_ITEMS)
        except DecodeError as error:
            raise DecodeError(f"{self.key.label}: {error}") from None
