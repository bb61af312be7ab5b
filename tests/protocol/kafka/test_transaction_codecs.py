"""The APIs of transactions and UpdateFeatures in Kafka's protocol, every version both ways."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.kafka.hot_fields import unsigned
from barnabas.protocol.kafka.transactions import end_txn
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.update_features import (
    SAFE_DOWNGRADE,
    UNSAFE_DOWNGRADE,
    UPGRADE,
)
from barnabas.protocol.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from barnabas.protocol.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    TxnPartitionResult,
    TxnPartitions,
    TxnResult,
    TxnTopic,
    TxnTopicResult,
)
from barnabas.protocol.messages.transactions.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionDescription,
)
from barnabas.protocol.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.transactions.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionListing,
)
from barnabas.protocol.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitPartition,
    TxnOffsetCommitRequest,
    TxnOffsetCommitTopic,
)
from barnabas.protocol.messages.transactions.write_txn_markers import (
    TxnMarker,
    TxnMarkerResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.protocol.kafka.codecs import decoded, encoded, refused, row, versions_of

ADD_PARTITIONS, ADD_OFFSETS, END = ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN
MARKERS, COMMIT = ApiKey.WRITE_TXN_MARKERS, ApiKey.TXN_OFFSET_COMMIT
LIST, DESCRIBE, FEATURES = ApiKey.LIST_TRANSACTIONS, ApiKey.DESCRIBE_TRANSACTIONS, ApiKey.UPDATE_FEATURES
PRODUCER_ID = 1 << 40
FENCED, FENCED_OLD, ABORTABLE, INVALID_STATE = 90, 47, 120, 48


@pytest.mark.parametrize(("api", "version"), versions_of(ADD_PARTITIONS))
def test_added_partitions_both_ways(api: ApiKey, version: int) -> None:
    batched = version >= 4
    topics = (row(api, version, "AddPartitionsToTxnTopic", name="t", partitions=(0, 7)),)
    if batched:
        transaction = {"producer_id": PRODUCER_ID, "producer_epoch": 3, "topics": topics}
        request = decoded(
            api,
            version,
            transactions=(
                row(api, version, "AddPartitionsToTxnTransaction", transactional_id="x", **transaction),
                row(
                    api, version, "AddPartitionsToTxnTransaction", transactional_id="y", verify_only=True, **transaction
                ),
            ),
        )
    else:
        request = decoded(
            api,
            version,
            v3_and_below_transactional_id="x",
            v3_and_below_producer_id=PRODUCER_ID,
            v3_and_below_producer_epoch=3,
            v3_and_below_topics=topics,
        )
    ids = [("x", False), ("y", True)] if batched else [("x", False)]
    assert request == AddPartitionsToTxnRequest(
        [TxnPartitions(each, PRODUCER_ID, 3, [TxnTopic("t", [0, 7])], only) for each, only in ids], batched
    )
    results = [TxnPartitionResult(0, ErrorCode.PRODUCER_FENCED), TxnPartitionResult(7, ErrorCode.TRANSACTION_ABORTABLE)]
    answer = encoded(
        api,
        version,
        AddPartitionsToTxnResponse([TxnResult(each, [TxnTopicResult("t", results)]) for each, _ in ids]),
    )
    expected = [{"name": "t", "results_by_partition": [
        {"partition_index": 0, "partition_error_code": FENCED if version >= 2 else FENCED_OLD},
        {"partition_index": 7, "partition_error_code": ABORTABLE},
    ]}]  # fmt: skip
    if batched:
        assert answer["error_code"] == 0
        assert answer["results_by_transaction"] == [
            {"transactional_id": each, "topic_results": expected} for each, _ in ids
        ]
    else:
        assert answer["results_by_topic_v3_and_below"] == expected
    refusal = refused(api, version, request, ErrorCode.COORDINATOR_NOT_AVAILABLE, "no")
    if batched:
        assert (refusal["error_code"], refusal["results_by_transaction"]) == (15, [])
    else:
        ((topic),) = refusal["results_by_topic_v3_and_below"]
        assert [each["partition_error_code"] for each in topic["results_by_partition"]] == [15, 15]


@pytest.mark.parametrize(("api", "version"), versions_of(ADD_OFFSETS))
def test_added_offsets_both_ways(api: ApiKey, version: int) -> None:
    request = decoded(api, version, transactional_id="x", producer_id=PRODUCER_ID, producer_epoch=3, group_id="g")
    assert request == AddOffsetsToTxnRequest("x", PRODUCER_ID, 3, "g")
    assert encoded(api, version, AddOffsetsToTxnResponse())["error_code"] == 0
    fenced = encoded(api, version, AddOffsetsToTxnResponse(ErrorCode.PRODUCER_FENCED))
    assert fenced["error_code"] == (FENCED if version >= 2 else FENCED_OLD)
    assert refused(api, version, request, ErrorCode.COORDINATOR_NOT_AVAILABLE, "no")["error_code"] == 15


@pytest.mark.parametrize(("api", "version"), versions_of(END))
@pytest.mark.parametrize("committed", [True, False])
def test_an_end_both_ways(api: ApiKey, version: int, committed: bool) -> None:
    request = decoded(
        api, version, transactional_id="x", producer_id=PRODUCER_ID, producer_epoch=3, committed=committed
    )
    assert request == EndTxnRequest("x", PRODUCER_ID, 3, committed, bumps_epoch=version >= 5)
    answer = encoded(api, version, EndTxnResponse(ErrorCode.NONE, PRODUCER_ID, 4))
    assert answer["error_code"] == 0
    if version >= 5:
        assert (answer["producer_id"], answer["producer_epoch"]) == (PRODUCER_ID, 4)
    fenced = encoded(api, version, EndTxnResponse(ErrorCode.PRODUCER_FENCED))
    assert fenced["error_code"] == (FENCED if version >= 2 else FENCED_OLD)
    refusal = refused(api, version, request, ErrorCode.INVALID_TXN_STATE, "no")
    assert (refusal["error_code"], refusal.get("producer_id", -1), refusal.get("producer_epoch", -1)) == (48, -1, -1)


@pytest.mark.parametrize(("api", "version"), versions_of(MARKERS))
def test_markers_both_ways(api: ApiKey, version: int) -> None:
    marker = row(
        api,
        version,
        "WritableTxnMarker",
        producer_id=PRODUCER_ID,
        producer_epoch=3,
        transaction_result=True,
        topics=(row(api, version, "WritableTxnMarkerTopic", name="t", partition_indexes=(0, 7)),),
        coordinator_epoch=5,
        transaction_version=2,
    )
    request = decoded(api, version, markers=(marker,))
    assert request == WriteTxnMarkersRequest(
        [TxnMarker(PRODUCER_ID, 3, True, [TxnTopic("t", [0, 7])], 5, 2 if version >= 2 else 0)]
    )
    results = [TxnPartitionResult(0), TxnPartitionResult(7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    response = WriteTxnMarkersResponse([TxnMarkerResult(PRODUCER_ID, [TxnTopicResult("t", results)])])

    def expected(*codes: int) -> dict[str, Any]:
        partitions = [
            {"partition_index": number, "error_code": code} for number, code in zip((0, 7), codes, strict=True)
        ]
        return {"markers": [{"producer_id": PRODUCER_ID, "topics": [{"name": "t", "partitions": partitions}]}]}

    assert encoded(api, version, response) == expected(0, 3)
    assert refused(api, version, request, ErrorCode.NOT_LEADER_OR_FOLLOWER, "no") == expected(6, 6)


@pytest.mark.parametrize(("api", "version"), versions_of(COMMIT))
def test_transactional_offsets_are_refused_with_codes_that_the_version_knows(api: ApiKey, version: int) -> None:
    asked = TxnOffsetCommitRequest(
        transactional_id="x",
        group_id="g",
        producer_id=PRODUCER_ID,
        producer_epoch=3,
        topics=[TxnOffsetCommitTopic(name="t", partitions=[TxnOffsetCommitPartition(partition=7, offset=1)])],
    )
    request = TxnOffsetCommitRequest.decode(version, asked.encode(version))
    assert request.adds_offsets is (version >= 5)
    for code, known, first, before in (
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 14, 2, 15),
        (ErrorCode.TRANSACTION_ABORTABLE, ABORTABLE, 4, INVALID_STATE),
        (ErrorCode.ILLEGAL_GENERATION, 22, 0, 22),
    ):
        (topic,) = refused(api, version, request, code, "no")["topics"]
        assert topic == {
            "name": "t",
            "partitions": [{"partition_index": 7, "error_code": known if version >= first else before}],
        }


@pytest.mark.parametrize(("api", "version"), versions_of(LIST))
def test_a_list_both_ways(api: ApiKey, version: int) -> None:
    request = decoded(
        api,
        version,
        state_filters=("Ongoing", "Odd"),
        producer_id_filters=(PRODUCER_ID,),
        duration_filter=70_000,
        transactional_id_pattern="x.*",
    )
    assert request == ListTransactionsRequest(
        ["Ongoing", "Odd"], [PRODUCER_ID], 70_000 if version >= 1 else -1, "x.*" if version >= 2 else None
    )
    answer = encoded(api, version, ListTransactionsResponse([TransactionListing("x", PRODUCER_ID, "Ongoing")], ["Odd"]))
    assert (answer["error_code"], answer["unknown_state_filters"]) == (0, ["Odd"])
    assert answer["transaction_states"] == [
        {"transactional_id": "x", "producer_id": PRODUCER_ID, "transaction_state": "Ongoing"}
    ]
    refusal = refused(api, version, request, ErrorCode.INVALID_REGULAR_EXPRESSION, "no")
    assert (refusal["error_code"], refusal["transaction_states"]) == (128, [])


@pytest.mark.parametrize(("api", "version"), versions_of(DESCRIBE))
def test_a_description_both_ways(api: ApiKey, version: int) -> None:
    request = decoded(api, version, transactional_ids=("x", "y"))
    assert request == DescribeTransactionsRequest(["x", "y"])
    open_one = TransactionDescription(
        "x", ErrorCode.NONE, "Ongoing", 60_000, 1_700_000_000_000, PRODUCER_ID, 3, [TxnTopic("t", [0, 7])]
    )
    unknown = TransactionDescription("y", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    first, second = encoded(api, version, DescribeTransactionsResponse([open_one, unknown]))["transaction_states"]
    assert (first["error_code"], first["transactional_id"], first["transaction_state"]) == (0, "x", "Ongoing")
    assert first["transaction_timeout"].total_seconds() == 60
    assert first["transaction_start_time"].timestamp() == 1_700_000_000
    assert (first["producer_id"], first["producer_epoch"]) == (PRODUCER_ID, 3)
    assert first["topics"] == [{"topic": "t", "partitions": [0, 7]}]
    assert (second["error_code"], second["transactional_id"], second["transaction_state"]) == (105, "y", "")
    refusal = refused(api, version, request, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "no")["transaction_states"]
    assert [(each["transactional_id"], each["error_code"]) for each in refusal] == [("x", 14), ("y", 14)]


@pytest.mark.parametrize(("api", "version"), versions_of(FEATURES))
def test_the_type_of_an_update_is_a_flag_in_version_0(api: ApiKey, version: int) -> None:
    updates = tuple(
        row(
            api,
            version,
            "FeatureUpdateKey",
            feature=name,
            max_version_level=level,
            allow_downgrade=kind != UPGRADE,
            upgrade_type=kind,
        )
        for name, level, kind in (("a", 2, UPGRADE), ("b", 0, SAFE_DOWNGRADE), ("c", -1, UNSAFE_DOWNGRADE))
    )
    request = decoded(api, version, feature_updates=updates, validate_only=True)
    unsafe = UNSAFE_DOWNGRADE if version >= 1 else SAFE_DOWNGRADE
    assert [each.update_type for each in request.updates] == [UPGRADE, SAFE_DOWNGRADE, unsafe]
    refusal = refused(api, version, request, ErrorCode.INVALID_REQUEST, "no")
    assert (refusal["error_code"], refusal["error_message"], refusal.get("results", [])) == (42, "no", [])


@pytest.mark.parametrize("name", ["", "x", "\u00e9" * 63, "x" * 126, "x" * 127, "\u00e9" * 64, "x" * 300])
@pytest.mark.parametrize("tagged", [b"\x00", b"\x01\x07\x01\xff"])
def test_every_form_of_the_newest_end_txn_is_decoded(name: str, tagged: bytes) -> None:
    data = name.encode()
    body = unsigned(len(data) + 1) + data + struct.pack(">qh?", PRODUCER_ID, 3, True) + tagged
    assert end_txn.decode_request(5, memoryview(body)) == EndTxnRequest(name, PRODUCER_ID, 3, True, bumps_epoch=True)
    for cut in range(len(body)):
        with pytest.raises(DecodeError):
            end_txn.decode_request(5, memoryview(body[:cut]))


def test_a_transactional_id_of_the_newest_end_txn_is_utf_8() -> None:
    body = b"\x02\xff" + struct.pack(">qh?B", PRODUCER_ID, 3, True, 0)
    with pytest.raises(DecodeError, match="transactional_id"):
        end_txn.decode_request(5, memoryview(body))
