"""UpdateFeatures (57), versions 0-2.

Version 0 has a flag that allows a downgrade, which may only lose nothing; later versions have the type of the update,
and a dry run. Version 2 left out the results of single features.
"""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
    BOOL,
    INT8,
    INT16,
    INT32,
    MESSAGE,
    NO_THROTTLE,
    STRING,
    Message,
    rows,
    since,
    until,
)
from barnabas.protocol.messages.cluster.update_features import (
    SAFE_DOWNGRADE,
    UPGRADE,
    FeatureUpdate,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)


def _update(name: str, level: int, update_type: int = UPGRADE, allows_downgrade: bool = False) -> FeatureUpdate:
    return FeatureUpdate(name, level, SAFE_DOWNGRADE if allows_downgrade else update_type)


REQUEST = Message(
    0,
    UpdateFeaturesRequest,
    _timeout_ms=INT32,
    updates=rows(_update, name=STRING, level=INT16, allows_downgrade=until(0, BOOL), update_type=since(1, INT8)),
    validate_only=since(1, BOOL),
)
RESPONSE = Message(
    0,
    throttle_ms=NO_THROTTLE,
    error=INT16,
    message=MESSAGE,
    results=until(1, rows(name=STRING, error=INT16, message=MESSAGE)),
)

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: UpdateFeaturesRequest, code: ErrorCode, message: str) -> bytes:
    """The code and its message."""
    return RESPONSE.write(version, UpdateFeaturesResponse(error=code, message=message))
