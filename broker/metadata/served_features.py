"""The features of the cluster that this broker serves, with their levels."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.broker.metadata.image import MetadataImage
from barnabas.protocol.metadata.levels import (
    GROUP_VERSION,
    METADATA_VERSION,
    NEWEST_GROUP_VERSION,
    NEWEST_KNOWN_LEVEL,
    NEWEST_SHARE_VERSION,
    NEWEST_STREAMS_VERSION,
    NEWEST_TRANSACTION_VERSION,
    OLDEST_KNOWN_LEVEL,
    SHARE_VERSION,
    STREAMS_VERSION,
    TRANSACTION_VERSION,
)


class Feature(NamedTuple):
    """A feature of the cluster: the supported levels and the finalized one."""

    name: str
    min_version: int
    max_version: int
    level: int


def served_features(image: MetadataImage, *, has_consumer_groups: bool) -> list[Feature]:
    """Return the supported features with their finalized levels; none without a `metadata.version`."""
    if image.level is None:
        return []
    return [
        Feature(GROUP_VERSION, 0, NEWEST_GROUP_VERSION, NEWEST_GROUP_VERSION if has_consumer_groups else 0),
        Feature(METADATA_VERSION, OLDEST_KNOWN_LEVEL, NEWEST_KNOWN_LEVEL, image.level),
        Feature(SHARE_VERSION, 0, NEWEST_SHARE_VERSION, image.features.get(SHARE_VERSION, 0)),
        Feature(STREAMS_VERSION, 0, NEWEST_STREAMS_VERSION, image.features.get(STREAMS_VERSION, 0)),
        Feature(TRANSACTION_VERSION, 0, NEWEST_TRANSACTION_VERSION, image.features.get(TRANSACTION_VERSION, 0)),
    ]
