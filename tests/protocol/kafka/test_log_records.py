"""The records of Kafka's internal logs: ours have the versions, the fields and the bytes of Kafka's definitions."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.protocol.metadata import control, frame
from tests.protocol.kafka.differences import UNREAD_FIELDS, UNREAD_RECORDS
from tests.support.kafka.declared_records import DECLARED_RECORDS
from tests.support.kafka.definitions import NEWEST, VERSIONS, definition, load, versions

Codec = Callable[[int, bytes], bytes]
"""Decodes a record's bytes without its version, and encodes what came out."""

CONTROL = {
    "LeaderChangeMessage": control.LeaderChange,
    "SnapshotHeaderRecord": control.SnapshotHeader,
    "SnapshotFooterRecord": control.SnapshotFooter,
    "KRaftVersionRecord": control.KRaftVersion,
    "VotersRecord": control.KRaftVoters,
}


def codecs() -> dict[str, Codec]:
    found: dict[str, Codec] = {}
    for name, each in load(NEWEST).items():
        if each["type"] in ("request", "response", "header") or name.removesuffix("Record") in UNREAD_RECORDS:
            continue
        if name in DECLARED_RECORDS:
            continue
        if name in CONTROL:
            found[name] = control_record(CONTROL[name])
        else:
            found[name] = metadata_record(frame._SERVED[each["apiKey"]][0])
    return found


def control_record(kind: Any) -> Codec:
    return lambda _, body: kind.decode(body).encode()


def metadata_record(kind: Any) -> Codec:
    return lambda version, body: kind.decode_whole(version, body).encode(version)


CODECS = codecs()


def canonical(value: Any, name: str = "") -> Any:
    """Maps and sets as we write them, and no values that Kafka never writes (UNWRITTEN_VALUES)."""
    if isinstance(value, dict):
        found = {field: canonical(each, name + field) for field, each in value.items()}
        if "AssignmentEpochs" in found:  # one for each partition, which Kafka before 4.2 leaves out
            has_epochs = not name.startswith(("Standby", "Warmup"))
            found["AssignmentEpochs"] = list(range(len(found["Partitions"]))) if has_epochs else []
        if found.get("ClassicMemberMetadata") == {"SessionTimeoutMs": 0, "SupportedProtocols": []}:
            found["ClassicMemberMetadata"] = None
        return found
    if not isinstance(value, list) or not value or isinstance(value[0], str):
        return value
    if isinstance(value[0], int):
        return sorted(set(value))
    by_key = {str(next(iter(each.values()))): each for each in value}
    return [canonical(by_key[key], name) for key in sorted(by_key)]


@pytest.mark.parametrize("kafka", VERSIONS)
@pytest.mark.parametrize("name", CODECS)
def test_a_record_of_kafka_comes_back_with_the_same_bytes(kafka: str, name: str) -> None:
    rng = random.Random(name)
    for version in versions(load(kafka)[name]["validVersions"]):
        record = definition(kafka, name, version)
        for _ in range(30):
            value = record.draw(rng)
            if name in CONTROL:
                value["Version"] = version
            if "Group" in name or "Protocol" in name:
                value = canonical(value)
            kept = {field: each for field, each in value.items() if (name, field) not in UNREAD_FIELDS}
            ours = CODECS[name](version, record.encode(value))
            assert record.decode(ours) == {**record.defaults(), **kept}, version
            assert ours == record.encode(kept), version


def test_the_records_of_the_metadata_log_have_kafkas_keys_names_and_versions() -> None:
    theirs = {
        each["apiKey"]: (name.removesuffix("Record"), versions(each["validVersions"])[-1])
        for name, each in load("4.3.0").items()
        if each["type"] == "metadata" and not name.startswith("Remote")
    }
    assert {key: name for key, (name, _) in theirs.items()} == frame.RECORD_NAMES
    assert {key: newest for key, (_, newest) in frame._SERVED.items()} == {
        key: newest for key, (_, newest) in theirs.items() if key in frame._SERVED
    }
