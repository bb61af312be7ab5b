"""Changes of the features of the cluster (UpdateFeatures).

    metadata.version      any known level may be reached upwards; downwards only past levels that changed no metadata
    transaction.version   0 to 2, both ways
    share.version         0 and 1, both ways: at 0 share groups are refused and keep their state
    streams.version       0 and 1, both ways
    group.version         1 while group.coordinator.rebalance.protocols has consumer groups. It is not in the metadata
                          log, because a record would keep Kafka 3.7 from starting; so it is not changed here
    kraft.version         as it is: a change of the quorum's voters is not served
    others                features that Kafka finalized (streams.version, ...) can be removed: level 0

One refused feature refuses the whole request, with Kafka's messages. Source: Kafka's FeatureControlManager,
QuorumFeatures, Feature and MetadataVersion.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.plan import Plan
from barnabas.broker.metadata.served_features import Feature, served_features
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.cluster.update_features import (
    SAFE_DOWNGRADE,
    UNSAFE_DOWNGRADE,
    UPGRADE,
    FeatureUpdate,
    FeatureUpdateResult,
)
from barnabas.protocol.metadata.levels import (
    GROUP_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
    TRANSACTION_VERSION,
    changes_metadata,
)
from barnabas.protocol.metadata.records import FeatureLevelRecord, MetadataRecord

_CHANGEABLE_FEATURES: Final = frozenset({SHARE_VERSION, STREAMS_VERSION, TRANSACTION_VERSION})
"""Features whose levels may go up and down."""

_KEPT_FEATURES: Final = frozenset({"eligible.leader.replicas.version"})
"""Features that Kafka may have finalized in a directory, and that this broker does not serve."""


def plan_update_features(
    image: MetadataImage,
    updates: Sequence[FeatureUpdate],
    *,
    node_id: int,
    kraft_version: int,
    has_consumer_groups: bool,
) -> Plan[FeatureUpdateResult]:
    """Plan the updates; of several for one feature the last counts. Raises BrokerError INVALID_UPDATE_VERSION."""
    served = {feature.name: feature for feature in served_features(image, has_consumer_groups=has_consumer_groups)}
    served[KRAFT_VERSION] = Feature(KRAFT_VERSION, 0, kraft_version, kraft_version)
    records: list[MetadataRecord] = []
    for update in {each.name: each for each in updates}.values():
        feature = served.get(update.name) or Feature(update.name, 0, 0, image.features.get(update.name, 0))
        _ensure_valid(feature, update, node_id)
        if update.level != feature.level:
            records.append(FeatureLevelRecord(update.name, update.level))
    return Plan([FeatureUpdateResult(name=update.name) for update in updates], records)


def _ensure_valid(feature: Feature, update: FeatureUpdate, node_id: int) -> None:
    if update.update_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        raise _invalid(update, "The controller does not support the given upgrade type.")
    if update.level < 0:
        raise _invalid(update, "A feature version cannot be less than 0.")
    if not feature.min_version <= update.level <= feature.max_version:
        what = f"Local controller {node_id}"
        if feature.max_version == 0:
            raise _invalid(update, f"{what} does not support this feature.")
        raise _invalid(update, f"{what} only supports versions {feature.min_version}-{feature.max_version}")
    if update.level < feature.level and update.update_type == UPGRADE:
        raise _invalid(
            update,
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade.",
        )
    if update.level > feature.level and update.update_type != UPGRADE:
        raise _invalid(update, "Can't downgrade to a newer version.")
    if update.name == METADATA_VERSION:
        _ensure_metadata_kept(feature.level, update)
    elif update.name == GROUP_VERSION:
        if update.level != feature.level:
            raise _invalid(update, "It is 1 while group.coordinator.rebalance.protocols contains consumer, else 0.")
    elif update.name == KRAFT_VERSION:
        if update.level != feature.level:
            raise _invalid(update, "Can't downgrade the version of this feature.")
    elif update.name not in _CHANGEABLE_FEATURES and update.name not in _KEPT_FEATURES:
        raise _invalid(update, f"Feature {update.name} not found.")


def _ensure_metadata_kept(level: int, update: FeatureUpdate) -> None:
    """Refuse to lower `metadata.version` past a level that brought new records, as Kafka does."""
    if update.level >= level or not changes_metadata(update.level, level):
        return
    reason = (
        "Unsafe metadata downgrade is not supported in this version."
        if update.update_type == UNSAFE_DOWNGRADE
        else "Refusing to perform the requested downgrade because it might delete metadata information."
    )
    raise _refusal(f"Unsupported metadata.version downgrade from {level} to {update.level}. {reason}")


def _invalid(update: FeatureUpdate, reason: str) -> BrokerError:
    return _refusal(f"Invalid update version {update.level} for feature {update.name}. {reason}")


def _refusal(sentence: str) -> BrokerError:
    message = f"The update failed for all features since the following feature had an error: {sentence}"
    return BrokerError(ErrorCode.INVALID_UPDATE_VERSION, message)
