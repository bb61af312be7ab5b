"""ApiVersions (18), versions 0-4: the served APIs, from the table in apis.py, and the features of the cluster.

The client's software name and version (3+) must be well formed; otherwise the answer is INVALID_REQUEST with an empty
list. The answer to an unsupported version of this API is in version 0 and contains its own range: see dialect.py. A
feature whose lowest version is 0 is left out below version 4, whose readers do not expect it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.kafka.apis import KAFKA_APIS, OWN_APIS, KafkaApi
from barnabas.protocol.kafka.schema import INT16, INT64, NO_THROTTLE, STRING, Computed, Message, Tagged, rows, since
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse, Feature

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_SOFTWARE_FROM = 3
_ZERO_VERSIONS_FROM = 4


class _Answer(NamedTuple):
    error: ErrorCode
    apis: Sequence[KafkaApi]
    supported_features: tuple[Feature, ...] = ()
    features_epoch: int = -1
    finalized_features: tuple[Feature, ...] = ()


def _lowest(api: KafkaApi) -> int:
    return api.lowest if api.advertised_from is None else api.advertised_from


REQUEST = Message(
    3,
    lambda client="", client_version="": ApiVersionsRequest(client, client_version),
    client=since(3, STRING),
    client_version=since(3, STRING),
)
RESPONSE = Message(
    3,
    error=INT16,
    apis=rows(key=INT16, lowest=Computed(INT16, _lowest), highest=INT16),
    throttle_ms=since(1, NO_THROTTLE),
    supported_features=since(3, Tagged(rows(name=STRING, min_version=INT16, max_version=INT16), tag=0, default=())),
    features_epoch=since(3, Tagged(INT64, tag=1, default=-1)),
    finalized_features=since(
        3,
        Tagged(
            rows(name=STRING, level=INT16, lowest_level=Computed(INT16, lambda feature: feature.level)),
            tag=2,
            default=(),
        ),
    ),
)


def decode_request(version: int, body: memoryview) -> ApiVersionsRequest:
    """Raises DecodeError; BrokerError INVALID_REQUEST for a client without a proper name."""
    request: ApiVersionsRequest = REQUEST.read(version, body)
    if version >= _SOFTWARE_FROM and not all(
        _SOFTWARE.fullmatch(each) for each in (request.client, request.client_version)
    ):
        raise BrokerError(ErrorCode.INVALID_REQUEST, "the client's software name or version is not well formed")
    return request


def encode_response(version: int, response: ApiVersionsResponse) -> bytes:
    """All rows of the table, and the broker's features. Encoded once for each response and version."""
    encoded = response.encoded.get(version)
    if encoded is None:
        encoded = response.encoded[version] = _encode(version, response)
    return encoded


def _encode(version: int, response: ApiVersionsResponse) -> bytes:
    features = response.features
    answer = _Answer(
        ErrorCode.NONE,
        [api for api in (*KAFKA_APIS, *OWN_APIS) if api.key not in response.unlisted],
        tuple(each for each in features if each.min_version > 0 or version >= _ZERO_VERSIONS_FROM),
        response.features_epoch,
        tuple(each for each in features if each.level > 0),
    )
    return RESPONSE.write(version, answer)


def encode_error(version: int, request: Any, code: ErrorCode, message: str) -> bytes:
    """The code, and for UNSUPPORTED_VERSION the range of this API."""
    own = [api for api in KAFKA_APIS if api.key == ApiKey.API_VERSIONS and code == ErrorCode.UNSUPPORTED_VERSION]
    return RESPONSE.write(version, _Answer(code, own))
