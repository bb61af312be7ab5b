"""ApiVersions (key 18), hello in the native dialect: both sides' software, and the versions of the APIs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.fields import LATEST, since, tagged, unwired
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Bool, Error, Int16, Int32, Int64, String

OWN_VERSIONS: Final = (0, 4)
"""The versions of ApiVersions itself, which the answer to an unsupported one names."""

_SOFTWARE_FROM: Final = 3
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


class ApiVersionRange(Struct):
    """A range of versions, both ends included."""

    api: Int16
    min_version: Int16
    max_version: Int16


class SupportedFeature(Struct):
    """A feature of a cluster, for example metadata.version, and its supported levels."""

    name: String
    min_version: Int16
    max_version: Int16


class FinalizedFeature(Struct):
    """The level of a feature that the cluster uses."""

    name: String
    max_level: Int16
    min_level: Int16


class ApiVersionsResponse(Struct, flexible=3):
    """`features_epoch` is -1 if unknown. The attributes off the wire are in the native dialect only.

    `max_frame_bytes`: the largest frame that the broker accepts (socket.request.max.bytes).
    """

    error: Error = ErrorCode.NONE
    apis: Sequence[ApiVersionRange] = ()
    throttle_ms: Int32 = since(1, default=0)
    supported_features: Sequence[SupportedFeature] = tagged(0, since=3, default=())
    features_epoch: Int64 = tagged(1, since=3, default=-1)
    finalized_features: Sequence[FinalizedFeature] = tagged(2, since=3, default=())
    zk_migration_ready: Bool = tagged(3, since=3, default=False)
    server: str = unwired(default="")
    server_version: str = unwired(default="")
    cluster_id: str = unwired(default="")
    node_id: int = unwired(default=-1)
    max_frame_bytes: int = unwired(default=0)

    @property
    def ranges(self) -> dict[int, tuple[int, int]]:
        """The lowest and highest version of each API."""
        return {each.api: (each.min_version, each.max_version) for each in self.apis}


class ApiVersionsRequest(Request[ApiVersionsResponse], api=ApiKey.API_VERSIONS, flexible=3):
    """The client's software and its version, for the broker's log and metrics."""

    client: String = since(3, default="")
    client_version: String = since(3, default="")

    def check(self) -> None:
        """Raise BrokerError INVALID_REQUEST for a client without a proper name."""
        if _SOFTWARE_FROM <= self.version < LATEST and not all(
            _SOFTWARE.fullmatch(each) for each in (self.client, self.client_version)
        ):
            raise BrokerError(ErrorCode.INVALID_REQUEST, "the client's software name or version is not well formed")

    def refused(self, code: ErrorCode, message: str) -> ApiVersionsResponse:
        """The code, and for UNSUPPORTED_VERSION the range of this API."""
        lowest, highest = OWN_VERSIONS
        own = ApiVersionRange(api=ApiKey.API_VERSIONS, min_version=lowest, max_version=highest)
        return ApiVersionsResponse(error=code, apis=[own] if code is ErrorCode.UNSUPPORTED_VERSION else ())
