"""UpdateFeatures (key 57): finalized levels of the cluster's features."""

from __future__ import annotations

from dataclasses import dataclass, field

from barnabas.protocol.errors import ErrorCode

UPGRADE = 1
SAFE_DOWNGRADE = 2
UNSAFE_DOWNGRADE = 3


@dataclass(slots=True)
class FeatureUpdate:
    """`level` 0 removes the feature. `update_type`: UPGRADE, SAFE_DOWNGRADE or UNSAFE_DOWNGRADE."""

    name: str
    level: int
    update_type: int = UPGRADE


@dataclass(slots=True)
class UpdateFeaturesRequest:
    """All updates apply, or none. `validate_only`: change nothing."""

    updates: list[FeatureUpdate]
    validate_only: bool = False


@dataclass(slots=True)
class FeatureUpdateResult:
    """One feature's result; sent in versions 0 and 1 only."""

    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(slots=True)
class UpdateFeaturesResponse:
    """`error` is that of the whole request."""

    results: list[FeatureUpdateResult] = field(default_factory=list)
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
