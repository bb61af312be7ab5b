"""UpdateFeatures (key 57): finalized levels of the cluster's features."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.fields import since, until
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Bool, Error, Int8, Int16, Int32, Message, String

UPGRADE = 1
SAFE_DOWNGRADE = 2
UNSAFE_DOWNGRADE = 3


class FeatureUpdateResult(Struct):
    """One feature's result."""

    name: String
    error: Error = ErrorCode.NONE
    message: Message = None


class UpdateFeaturesResponse(Struct, flexible=0):
    """`error` is that of the whole request."""

    throttle_ms: Int32 = 0
    error: Error = ErrorCode.NONE
    message: Message = None
    results: Sequence[FeatureUpdateResult] = until(1, default=())


class FeatureUpdate(Struct):
    """`level` 0 removes the feature. `upgrade_type`: UPGRADE, SAFE_DOWNGRADE or UNSAFE_DOWNGRADE."""

    name: String
    level: Int16
    allows_downgrade: Bool = until(0, default=False)
    upgrade_type: Int8 = since(1, default=UPGRADE)

    @property
    def update_type(self) -> int:
        """The type; version 0 has a flag that allows a downgrade, which may only lose nothing."""
        return SAFE_DOWNGRADE if self.allows_downgrade else self.upgrade_type


class UpdateFeaturesRequest(Request[UpdateFeaturesResponse], api=ApiKey.UPDATE_FEATURES, flexible=0):
    """All updates apply, or none. `validate_only`: change nothing."""

    timeout_ms: Int32 = 60_000
    updates: Sequence[FeatureUpdate]
    validate_only: Bool = since(1, default=False)

    def refused(self, code: ErrorCode, message: str) -> UpdateFeaturesResponse:
        """The code and its message."""
        return UpdateFeaturesResponse(error=code, message=message)
