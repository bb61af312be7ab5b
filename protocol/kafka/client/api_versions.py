"""ApiVersions (18), versions 0 and 3: what a broker serves. Features are not read.

A broker that does not have version 3 answers UNSUPPORTED_VERSION in the layout of version 0.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.client.api import ClientApi, VersionRanges
from barnabas.protocol.kafka.client.fields import ERROR
from barnabas.protocol.kafka.schema import INT16, INT32, STRING, Message, rows, since
from barnabas.protocol.messages.api_key import ApiKey

_FLEXIBLE_FROM: Final = 3


class Software(NamedTuple):
    """The client, for the broker's log and metrics."""

    client: str
    client_version: str


class ServedApis(NamedTuple):
    """Answer: an error, or the version range of each API key."""

    error: ErrorCode
    ranges: VersionRanges


def _served(error: ErrorCode, apis: list[tuple[int, tuple[int, int]]]) -> ServedApis:
    return ServedApis(error, dict(apis))


def _range(key: int, lowest: int, highest: int) -> tuple[int, tuple[int, int]]:
    return key, (lowest, highest)


API_VERSIONS: Final = ClientApi(
    ApiKey.API_VERSIONS,
    0,
    3,
    Message(_FLEXIBLE_FROM, client=since(3, STRING), client_version=since(3, STRING)),
    Message(
        _FLEXIBLE_FROM,
        _served,
        error=ERROR,
        apis=rows(_range, key=INT16, lowest=INT16, highest=INT16),
        _throttle_ms=since(1, INT32),
    ),
)
