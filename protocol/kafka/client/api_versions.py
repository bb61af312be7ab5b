"""ApiVersions (18), versions 0 and 3: what a broker serves. Features of version 4 are not asked for.

A broker that does not have version 3 answers UNSUPPORTED_VERSION in the layout of version 0.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse

API_VERSIONS: Final = ClientApi(ApiKey.API_VERSIONS, 0, 3, ApiVersionsRequest, ApiVersionsResponse)
