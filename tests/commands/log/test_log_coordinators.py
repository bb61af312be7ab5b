"""`barnabas log dump` of the coordinators' topics. tests/protocol/wire judges the JSON of all records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from barnabas.commands.main import main
from barnabas.protocol.groups.consumer_group_values import ConsumerGroupMetadataValue
from barnabas.protocol.groups.keys import ConsumerGroupMetadataKey, GroupMetadataKey, OffsetCommitKey
from barnabas.protocol.groups.values import GroupMetadataValue, MemberMetadata, OffsetCommitValue
from barnabas.protocol.records import RecordBatchBuilder
from barnabas.protocol.share.state_records import ShareUpdateKey, ShareUpdateValue, StateBatch
from barnabas.protocol.transactions.records import TransactionLogKey, TransactionLogValue, TransactionPartitions

OFFSET = (OffsetCommitKey("g", "orders", 3), OffsetCommitValue(42, 7, "m", 1000, topic_id=bytes(15) + b"\1"))
LOGS: list[tuple[str, Any, Any, dict[str, Any], dict[str, Any]]] = [
    (
        "--offsets-decoder",
        *OFFSET,
        {"type": "1", "data": {"group": "g", "topic": "orders", "partition": 3}},
        {
            "version": "4",
            "data": {
                "offset": 42,
                "leaderEpoch": 7,
                "metadata": "m",
                "commitTimestamp": 1000,
                "topicId": "AAAAAAAAAAAAAAAAAAAAAQ",
            },
        },
    ),
    (
        "--offsets",
        ConsumerGroupMetadataKey("g"),
        ConsumerGroupMetadataValue(5),
        {"type": "3", "data": {"groupId": "g"}},
        {"version": "0", "data": {"epoch": 5}},
    ),
    (
        "--transaction-log",
        TransactionLogKey("payments"),
        TransactionLogValue(4000, 7, 60_000, 1, (TransactionPartitions("t", (0, 2)),), 2, 1, 3999),
        {"type": "0", "data": {"transactionalId": "payments"}},
        {
            "version": "1",
            "data": {
                "producerId": 4000,
                "producerEpoch": 7,
                "transactionTimeoutMs": 60_000,
                "transactionStatus": 1,
                "transactionPartitions": [{"topic": "t", "partitionIds": [0, 2]}],
                "transactionLastUpdateTimestampMs": 2,
                "transactionStartTimestampMs": 1,
                "previousProducerId": 3999,
            },
        },
    ),
    (
        "--share-group-state",
        ShareUpdateKey("g", bytes(16), 0),
        ShareUpdateValue(snapshot_epoch=1, leader_epoch=2, start_offset=3, state_batches=(StateBatch(3, 4, 2, 1),)),
        {"type": "1", "data": {"groupId": "g", "topicId": "AAAAAAAAAAAAAAAAAAAAAA", "partition": 0}},
        {
            "version": "0",
            "data": {
                "snapshotEpoch": 1,
                "leaderEpoch": 2,
                "startOffset": 3,
                "stateBatches": [{"firstOffset": 3, "lastOffset": 4, "deliveryState": 2, "deliveryCount": 1}],
            },
        },
    ),
]


def dump(directory: Path, *arguments: str, **records: bytes | None) -> Result:
    """Dump a log of one record."""
    builder = RecordBatchBuilder(max_bytes=1 << 16)
    assert builder.append(0, records["key"], records["value"])
    path = directory / "00000000000000000000.log"
    path.write_bytes(builder.build())
    return CliRunner().invoke(main, ["log", "dump", *arguments, str(path)])


@pytest.mark.parametrize(("option", "key", "value", "key_json", "value_json"), LOGS, ids=[each[0] for each in LOGS])
def test_records_are_decoded_as_by_kafkas_tool(
    tmp_path: Path, option: str, key: Any, value: Any, key_json: dict[str, Any], value_json: dict[str, Any]
) -> None:
    records = {"key": key.to_bytes(), "value": value.to_bytes()}
    line = dump(tmp_path, option, **records).stdout.splitlines()[-1]
    head, _, data = line.partition(" key: ")
    assert head.startswith("| offset: 0 CreateTime: 0 keySize: ")
    assert data == f"{compact(key_json)} payload: {compact(value_json)}"
    found = json.loads(dump(tmp_path, option, "--json", **records).stdout.splitlines()[-1])
    assert (found["key"], found["payload"]) == (key_json, value_json)


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def test_what_consumers_say_to_each_other_is_decoded_if_it_can_be(tmp_path: Path) -> None:
    members = [
        MemberMetadata(
            member_id="m", client_id="c", client_host="h", session_timeout=1, subscription=each, assignment=b""
        )
        for each in (b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff", b"\0\0\0", b"\0\x09")
    ]
    value = GroupMetadataValue("consumer", 1, "range", "m", members=tuple(members)).to_bytes()
    records = {"key": GroupMetadataKey("g").to_bytes(), "value": value}
    found = json.loads(dump(tmp_path, "--offsets", "--json", **records).stdout.splitlines()[-1])["payload"]["data"]
    subscriptions = [each["subscription"] for each in found["members"]]
    assert subscriptions == [{"topics": ["t"], "userData": None}, "AAAA", "AAk="]
    assert {each["assignment"] for each in found["members"]} == {""}


def test_a_tombstone_and_an_unknown_type_are_shown_as_by_kafkas_tool(tmp_path: Path) -> None:
    key = OFFSET[0].to_bytes()
    assert dump(tmp_path, "--offsets", key=key, value=None).stdout.endswith(" payload: <DELETE>\n")
    found = json.loads(dump(tmp_path, "--offsets", "--json", key=key, value=None).stdout.splitlines()[-1])
    assert found["payload"] is None
    for option, unknown in (("--offsets", b"\0\x63"), ("--transaction-log", b"\0\1"), ("--share-group-state", b"\0\2")):
        text = dump(tmp_path, option, key=unknown, value=b"?").stdout
        assert text.endswith(f" key: Unknown record type {unknown[1]} at offset 0, skipping.\n")
        found = json.loads(dump(tmp_path, option, "--json", key=unknown, value=b"?").stdout.splitlines()[-1])
        assert found["key"] == {"type": str(unknown[1])}


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        (None, b"", "a coordinator's record has a key"),
        (b"\0\1\0\5g", b"", "group: 5 bytes asked, but 1 bytes are left"),
        (OFFSET[0].to_bytes(), b"\0\5", "OffsetCommitValue has version 5, the newest known is 4"),
    ],
)
def test_a_record_that_cannot_be_decoded_is_named(
    tmp_path: Path, key: bytes | None, value: bytes, sentence: str
) -> None:
    result = dump(tmp_path, "--offsets", key=key, value=value)
    assert result.exit_code == 1
    assert f"the record of offset 0 cannot be decoded: {sentence}" in result.stderr


def test_one_decoder_is_given(tmp_path: Path) -> None:
    result = dump(tmp_path, "--offsets", "--cluster-metadata", key=b"k", value=b"v")
    assert result.exit_code == 2
    assert "give one decoder" in result.output
