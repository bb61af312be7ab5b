"""Feature levels of new directories, and their changes with Kafka's checks and messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.broker.metadata.directories.examine import examine
from barnabas.broker.metadata.directories.report import KAFKA_VERSIONS, kafka
from barnabas.broker.metadata.features import plan_update_features
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.log.bootstrap_checkpoint import read_bootstrap_records
from barnabas.config import BrokerConfig
from barnabas.config.tables.broker_properties import BROKER_PROPERTIES, INITIAL_FEATURES
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.cluster.update_features import (
    SAFE_DOWNGRADE,
    UNSAFE_DOWNGRADE,
    FeatureUpdate,
)
from barnabas.protocol.metadata.levels import (
    METADATA_VERSION,
    NEWEST_KNOWN_LEVEL,
    NEWEST_SHARE_VERSION,
    NEWEST_STREAMS_VERSION,
    NEWEST_TRANSACTION_VERSION,
    OLDEST_KNOWN_LEVEL,
    SHARE_VERSION,
    STREAMS_VERSION,
    TRANSACTION_VERSION,
)
from barnabas.protocol.metadata.records import FeatureLevelRecord
from tests.support.storage.metadata_store import opened

DEFAULT = ",".join(BROKER_PROPERTIES["initial.features"].default)  # type: ignore[arg-type]
LEVELS = {METADATA_VERSION: 19, TRANSACTION_VERSION: 2, SHARE_VERSION: 1, STREAMS_VERSION: 1}


def updated(*updates: FeatureUpdate, kraft_version: int = 0) -> dict[str, int]:
    """Return the levels of the records that the updates plan."""
    plan = plan_update_features(
        MetadataImage(features=LEVELS), updates, node_id=1, kraft_version=kraft_version, has_consumer_groups=True
    )
    assert [each.name for each in plan.results] == [each.name for each in updates]
    return {record.name: record.level for record in plan.records if isinstance(record, FeatureLevelRecord)}


def test_a_new_directory_begins_at_the_initial_features(tmp_path: Path) -> None:
    with opened(tmp_path, initial_features=DEFAULT) as store:
        assert store.store.image.features == LEVELS
    levels = [
        FeatureLevelRecord(METADATA_VERSION, 19),
        FeatureLevelRecord(SHARE_VERSION, 1),
        FeatureLevelRecord(STREAMS_VERSION, 1),
        FeatureLevelRecord(TRANSACTION_VERSION, 2),
    ]
    assert read_bootstrap_records(tmp_path) == levels
    report = examine([tmp_path])
    assert [each for each in KAFKA_VERSIONS if not report.stopping(kafka(each))] == ["4.2", "4.3"]


def test_an_existing_directory_keeps_its_features(tmp_path: Path) -> None:
    with opened(tmp_path, initial_features="metadata.version=21, transaction.version=1"):
        pass
    with opened(tmp_path, initial_features="transaction.version=2") as store:
        assert store.store.image.features == {METADATA_VERSION: 21, TRANSACTION_VERSION: 1}


def test_level_0_writes_no_record_so_every_kafka_starts(tmp_path: Path) -> None:
    with opened(tmp_path, initial_features="transaction.version=0") as store:
        assert store.store.image.features == {METADATA_VERSION: 19}
    assert read_bootstrap_records(tmp_path) == [FeatureLevelRecord(METADATA_VERSION, 19)]
    assert examine([tmp_path]).problems == ()


def test_a_raised_metadata_version_is_kept_and_later_records_follow_it(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        image = store.store.image
        update = FeatureUpdate(name=METADATA_VERSION, level=30)
        store.store.change(
            lambda each: plan_update_features(each, [update], node_id=1, kraft_version=0, has_consumer_groups=True)
        )
        assert (image.level, store.store.image.level) == (19, 30)
    with opened(tmp_path) as store:
        assert store.store.image.level == 30


def test_initial_features_may_set_what_the_metadata_log_can_hold() -> None:
    assert {name: (lowest, highest) for name, lowest, highest in INITIAL_FEATURES} == {
        TRANSACTION_VERSION: (0, NEWEST_TRANSACTION_VERSION),
        SHARE_VERSION: (0, NEWEST_SHARE_VERSION),
        STREAMS_VERSION: (0, NEWEST_STREAMS_VERSION),
        METADATA_VERSION: (OLDEST_KNOWN_LEVEL, NEWEST_KNOWN_LEVEL),
    }
    assert BrokerConfig.of().initial_features == {TRANSACTION_VERSION: 2, SHARE_VERSION: 1, STREAMS_VERSION: 1}


@pytest.mark.parametrize(
    ("update", "levels"),
    [
        (FeatureUpdate(name=TRANSACTION_VERSION, level=0, upgrade_type=SAFE_DOWNGRADE), {TRANSACTION_VERSION: 0}),
        (FeatureUpdate(name=TRANSACTION_VERSION, level=1, upgrade_type=UNSAFE_DOWNGRADE), {TRANSACTION_VERSION: 1}),
        (FeatureUpdate(name=TRANSACTION_VERSION, level=2), {}),
        (FeatureUpdate(name=STREAMS_VERSION, level=0, upgrade_type=SAFE_DOWNGRADE), {STREAMS_VERSION: 0}),
        (FeatureUpdate(name=STREAMS_VERSION, level=1), {}),
        (FeatureUpdate(name=METADATA_VERSION, level=30), {METADATA_VERSION: 30}),
        (FeatureUpdate(name=METADATA_VERSION, level=18, upgrade_type=SAFE_DOWNGRADE), {METADATA_VERSION: 18}),
        (FeatureUpdate(name=SHARE_VERSION, level=0, upgrade_type=SAFE_DOWNGRADE), {SHARE_VERSION: 0}),
        (FeatureUpdate(name=SHARE_VERSION, level=1), {}),
        (FeatureUpdate(name="group.version", level=1), {}),
        (FeatureUpdate(name="kraft.version", level=0, upgrade_type=SAFE_DOWNGRADE), {}),
    ],
)
def test_an_update_writes_the_new_level(update: FeatureUpdate, levels: dict[str, int]) -> None:
    assert updated(update) == levels


def test_of_several_updates_of_one_feature_the_last_counts() -> None:
    updates = (
        FeatureUpdate(name=TRANSACTION_VERSION, level=9),
        FeatureUpdate(name=TRANSACTION_VERSION, level=1, upgrade_type=SAFE_DOWNGRADE),
    )
    assert updated(*updates) == {TRANSACTION_VERSION: 1}


@pytest.mark.parametrize(
    ("update", "sentence"),
    [
        (
            FeatureUpdate(name=TRANSACTION_VERSION, level=3),
            "Invalid update version 3 for feature transaction.version. Local controller 1 only supports versions 0-2",
        ),
        (
            FeatureUpdate(name=SHARE_VERSION, level=2),
            "Invalid update version 2 for feature share.version. Local controller 1 only supports versions 0-1",
        ),
        (
            FeatureUpdate(name=TRANSACTION_VERSION, level=-1, upgrade_type=SAFE_DOWNGRADE),
            "Invalid update version -1 for feature transaction.version. A feature version cannot be less than 0.",
        ),
        (
            FeatureUpdate(name=TRANSACTION_VERSION, level=1),
            "Invalid update version 1 for feature transaction.version. Can't downgrade the version of this feature "
            "without setting the upgrade type to either safe or unsafe downgrade.",
        ),
        (
            FeatureUpdate(name=METADATA_VERSION, level=30, upgrade_type=SAFE_DOWNGRADE),
            "Invalid update version 30 for feature metadata.version. Can't downgrade to a newer version.",
        ),
        (
            FeatureUpdate(name=TRANSACTION_VERSION, level=2, upgrade_type=0),
            "Invalid update version 2 for feature transaction.version. The controller does not support the given "
            "upgrade type.",
        ),
        (
            FeatureUpdate(name=METADATA_VERSION, level=31),
            "Invalid update version 31 for feature metadata.version. Local controller 1 only supports versions 7-30",
        ),
        (
            FeatureUpdate(name=METADATA_VERSION, level=16, upgrade_type=SAFE_DOWNGRADE),
            "Unsupported metadata.version downgrade from 19 to 16. Refusing to perform the requested downgrade because "
            "it might delete metadata information.",
        ),
        (
            FeatureUpdate(name=METADATA_VERSION, level=16, upgrade_type=UNSAFE_DOWNGRADE),
            "Unsupported metadata.version downgrade from 19 to 16. Unsafe metadata downgrade is not supported in this "
            "version.",
        ),
        (
            FeatureUpdate(name=STREAMS_VERSION, level=2),
            "Invalid update version 2 for feature streams.version. Local controller 1 only supports versions 0-1",
        ),
        (
            FeatureUpdate(name="what.version", level=0, upgrade_type=SAFE_DOWNGRADE),
            "Invalid update version 0 for feature what.version. Feature what.version not found.",
        ),
        (
            FeatureUpdate(name="kraft.version", level=1),
            "Invalid update version 1 for feature kraft.version. Local controller 1 does not support this feature.",
        ),
        (
            FeatureUpdate(name="group.version", level=0, upgrade_type=SAFE_DOWNGRADE),
            "Invalid update version 0 for feature group.version. It is 1 while group.coordinator.rebalance.protocols "
            "contains consumer, else 0.",
        ),
    ],
)
def test_a_refused_update_refuses_all_with_kafkas_message(update: FeatureUpdate, sentence: str) -> None:
    with pytest.raises(BrokerError) as caught:
        updated(FeatureUpdate(name=METADATA_VERSION, level=21), update)
    assert caught.value.code is ErrorCode.INVALID_UPDATE_VERSION
    head = "The update failed for all features since the following feature had an error: "
    assert caught.value.message == head + sentence


def test_the_voters_in_the_log_stay() -> None:
    assert updated(FeatureUpdate(name="kraft.version", level=1), kraft_version=1) == {}
    with pytest.raises(BrokerError, match="Can't downgrade the version of this feature"):
        updated(FeatureUpdate(name="kraft.version", level=0, upgrade_type=SAFE_DOWNGRADE), kraft_version=1)
