"""ApiVersions (18), versions 0-4: what is served here, by the table in apis.py.

The client's software name and version (3+) must look like one, or the answer is INVALID_REQUEST and an empty list.
The answer to a version that is not served is in version 0, with this API's own range: see dialect.py.
A feature whose lowest version is 0 is left out below version 4, whose readers do not expect it.
"""

from __future__ import annotations

import re
from typing import Any, Final

from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.kafka.apis import KAFKA_APIS, KafkaApi
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse

_API: Final = "api_versions"
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def decode_request(version: int, body: memoryview) -> ApiVersionsRequest:
    """Raises DecodeError; BrokerError INVALID_REQUEST for a client without a proper name."""
    request = entities.read_request(_API, version, body)
    client, client_version = (
        getattr(request, "client_software_name", ""),
        getattr(request, "client_software_version", ""),
    )
    if version >= 3 and not (_SOFTWARE.fullmatch(client) and _SOFTWARE.fullmatch(client_version)):
        raise BrokerError(ErrorCode.INVALID_REQUEST, "the client's software name or version is not well formed")
    return ApiVersionsRequest(client, client_version)


def encode_response(version: int, response: ApiVersionsResponse) -> bytes:
    """All rows of the table, and the broker's features."""
    schema = entities.response_schema(_API, version)
    features = response.features
    return entities.write(
        entities.make(
            schema.ApiVersionsResponse,
            error_code=ErrorCode.NONE,
            api_keys=tuple(_range(schema, api) for api in KAFKA_APIS),
            throttle_time=entities.NO_THROTTLE,
            supported_features=tuple(
                schema.SupportedFeatureKey(name=each.name, min_version=each.min_version, max_version=each.max_version)
                for each in features
                if each.min_version > 0 or version >= 4
            )
            if version >= 3
            else (),
            finalized_features_epoch=response.features_epoch,
            finalized_features=tuple(
                schema.FinalizedFeatureKey(name=each.name, max_version_level=each.level, min_version_level=each.level)
                for each in features
                if each.level > 0
            )
            if version >= 3
            else (),
        )
    )


def encode_error(version: int, request: Any, code: ErrorCode, message: str) -> bytes:
    """The code, and for UNSUPPORTED_VERSION the range of this API."""
    schema = entities.response_schema(_API, version)
    own = [api for api in KAFKA_APIS if api.key == ApiKey.API_VERSIONS and code == ErrorCode.UNSUPPORTED_VERSION]
    return entities.write(
        entities.make(
            schema.ApiVersionsResponse,
            error_code=code,
            api_keys=tuple(_range(schema, api) for api in own),
            throttle_time=entities.NO_THROTTLE,
        )
    )


def _range(schema: Any, api: KafkaApi) -> Any:
    low = api.lowest if api.advertised_from is None else api.advertised_from
    return schema.ApiVersion(api_key=int(api.key), min_version=low, max_version=api.highest)
