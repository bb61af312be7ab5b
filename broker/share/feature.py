"""The feature share.version: at level 0 requests of share groups are refused, as by Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.metadata.levels import SHARE_VERSION

if TYPE_CHECKING:
    from barnabas.broker.metadata.image import MetadataImage


def has_share_groups(image: MetadataImage) -> bool:
    """Return whether the cluster serves share groups."""
    return image.features.get(SHARE_VERSION, 0) >= 1


def ensure_share_groups(image: MetadataImage) -> None:
    """Raise BrokerError UNSUPPORTED_VERSION unless the cluster serves share groups."""
    if not has_share_groups(image):
        raise BrokerError(
            ErrorCode.UNSUPPORTED_VERSION,
            "share groups need share.version 1: kafka-features.sh upgrade --feature share.version=1",
        )
