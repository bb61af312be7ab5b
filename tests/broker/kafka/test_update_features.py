"""UpdateFeatures against a running broker: what ApiVersions shows afterwards, and after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.kafka_wire import KafkaWire, schema

UPGRADE, SAFE_DOWNGRADE = 1, 2


@pytest.fixture
def kafka(daemon: Daemon) -> Iterator[KafkaWire]:
    with connected(daemon) as client:
        yield client


def finalized(kafka: KafkaWire) -> tuple[dict[str, int], int]:
    """Return the finalized levels and their epoch."""
    answer = kafka.call("api_versions", 4, client_software_name="test", client_software_version="1.0")
    features = {each.name: each.max_version_level for each in answer.finalized_features}
    return features, answer.finalized_features_epoch


def update(kafka: KafkaWire, version: int, name: str, level: int, kind: int = UPGRADE, **fields: Any) -> Any:
    row: dict[str, Any] = {"allow_downgrade": kind != UPGRADE} if version == 0 else {"upgrade_type": kind}
    key = schema("update_features", version, "request").FeatureUpdateKey
    entry = key(feature=name, max_version_level=level, **row)
    return kafka.call("update_features", version, feature_updates=(entry,), **fields)


@pytest.mark.parametrize("version", range(3))
def test_levels_change_both_ways(kafka: KafkaWire, version: int) -> None:
    before, epoch = finalized(kafka)
    assert before["transaction.version"] == 2
    assert update(kafka, version, "transaction.version", 0, SAFE_DOWNGRADE).error_code == ErrorCode.NONE
    lowered, later = finalized(kafka)
    assert "transaction.version" not in lowered
    assert later > epoch
    answer = update(kafka, version, "transaction.version", 2)
    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
    if version <= 1:
        assert [(each.feature, each.error_code) for each in answer.results] == [("transaction.version", 0)]
    assert finalized(kafka)[0] == before


def test_a_dry_run_and_a_refused_update_change_nothing(kafka: KafkaWire) -> None:
    before = finalized(kafka)
    dry = update(kafka, 2, "transaction.version", 1, SAFE_DOWNGRADE, validate_only=True)
    assert dry.error_code == ErrorCode.NONE
    refused = update(kafka, 2, "transaction.version", 5)
    assert refused.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert refused.error_message.endswith("Local controller 1 only supports versions 0-2")
    assert finalized(kafka) == before


def test_levels_are_those_of_initial_features_and_survive_a_restart(tmp_path: Path) -> None:
    with start_daemon(tmp_path, "initial.features=transaction.version=1") as daemon, connected(daemon) as kafka:
        assert finalized(kafka)[0]["transaction.version"] == 1
        assert update(kafka, 2, "transaction.version", 2).error_code == ErrorCode.NONE
    with start_daemon(tmp_path) as daemon, connected(daemon) as kafka:
        assert finalized(kafka)[0]["transaction.version"] == 2


def connected(daemon: Daemon) -> KafkaWire:
    return KafkaWire(daemon.host, daemon.port)
