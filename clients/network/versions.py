"""The version of an API in which this client sends a request to a broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.protocol.kafka.apis import api_of
from barnabas.protocol.messages.api_key import ApiKey

VersionRanges = Mapping[int, tuple[int, int]]
"""The versions that a broker serves, lowest and highest, by API key."""

_HIGHEST: Final[dict[int, int]] = {
    ApiKey.PRODUCE: 12,
    ApiKey.OFFSET_COMMIT: 9,
    ApiKey.OFFSET_FETCH: 9,
    ApiKey.DELETE_TOPICS: 5,
}
"""Later versions name topics by id alone."""


def version_of(api: ApiKey, served: VersionRanges, highest: int | None = None) -> int | None:
    """Return the highest version that broker and client have in common, at most `highest`; None without one."""
    ours = api_of(api)
    low, high = served.get(api, (0, -1))
    if ours is None:
        return None
    version = min(high, ours.highest, _HIGHEST.get(api, high), high if highest is None else highest)
    return version if version >= max(low, ours.lowest) else None
