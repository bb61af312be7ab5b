"""The APIs of transactions and UpdateFeatures in Kafka's protocol, every version both ways."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.update_features import (
    SAFE_DOWNGRADE,
    UNSAFE_DOWNGRADE,
    UPGRADE,
)
from barnabas.protocol.messages.data.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    TxnPartitions,
    TxnTopic,
)
from barnabas.protocol.messages.transactions.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.transactions.end_txn import EndTxnRequest
from barnabas.protocol.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitPartition,
    TxnOffsetCommitRequest,
    TxnOffsetCommitTopic,
)
from barnabas.protocol.messages.transactions.write_txn_markers import TxnMarker, WriteTxnMarkersRequest
from tests.protocol.kafka.codecs import decoded, refused, row, versions_of

ADD_PARTITIONS, COMMIT, FEATURES = ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.TXN_OFFSET_COMMIT, ApiKey.UPDATE_FEATURES
PRODUCER_ID = 1 << 40
ABORTABLE, INVALID_STATE = 120, 48


TOPICS = [TxnTopic(name="t", partitions=[0, 7])]
PRODUCER: dict[str, Any] = {"transactional_id": "x", "producer_id": PRODUCER_ID, "producer_epoch": 3}


@pytest.mark.parametrize(("api", "version"), versions_of(ADD_PARTITIONS))
def test_added_partitions_are_of_a_client_or_of_several_transactions(api: ApiKey, version: int) -> None:
    batch = [TxnPartitions(**PRODUCER, topics=TOPICS), TxnPartitions(**PRODUCER, topics=TOPICS, verify_only=True)]
    asked = AddPartitionsToTxnRequest(**PRODUCER, topics=TOPICS, transactions=batch)
    request = AddPartitionsToTxnRequest.decode(version, asked.encode(version))
    assert request.is_batched is (version >= 4)
    assert request.asked == (batch if version >= 4 else batch[:1])
    error = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    expected = TxnPartitions(**PRODUCER, topics=TOPICS).refused(error).topics
    results = [each.refused(ErrorCode.PRODUCER_FENCED) for each in request.asked]
    answer = AddPartitionsToTxnResponse.decode(version, request.answered(results).encode(version))
    for topics in [each.topics for each in answer.transactions] if version >= 4 else [answer.topics]:
        assert topics == expected
    refusal = AddPartitionsToTxnResponse.decode(
        version, request.refused(ErrorCode.PRODUCER_FENCED, "no").encode(version)
    )
    if version >= 4:
        assert refusal == AddPartitionsToTxnResponse(error=ErrorCode.PRODUCER_FENCED)
    else:
        assert refusal == AddPartitionsToTxnResponse(topics=expected)


@pytest.mark.parametrize(
    ("request_", "fenced_from"),
    [
        pytest.param(AddOffsetsToTxnRequest(**PRODUCER, group_id="g"), 2, id="add_offsets_to_txn"),
        pytest.param(EndTxnRequest(**PRODUCER, is_commit=True), 2, id="end_txn"),
        pytest.param(InitProducerIdRequest(transactional_id="x"), 4, id="init_producer_id"),
    ],
)
def test_a_fenced_producer_gets_a_code_that_the_version_knows(request_: Any, fenced_from: int) -> None:
    for version in range(5):
        answer = request_.refused(ErrorCode.PRODUCER_FENCED, "no")
        found = type(answer).decode(version, answer.encode(version))
        known = ErrorCode.PRODUCER_FENCED if version >= fenced_from else ErrorCode.INVALID_PRODUCER_EPOCH
        assert found == type(answer)(error=known)


@pytest.mark.parametrize("version", range(6))
def test_an_end_bumps_the_epoch_from_version_5_on(version: int) -> None:
    asked = EndTxnRequest(**PRODUCER, is_commit=True)
    assert EndTxnRequest.decode(version, asked.encode(version)).bumps_epoch is (version >= 5)


def test_refused_markers_and_descriptions_have_the_code_for_each_place() -> None:
    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    marker = TxnMarker(producer_id=1, producer_epoch=3, is_commit=True, topics=TOPICS, coordinator_epoch=5)
    ((topic,),) = [each.topics for each in WriteTxnMarkersRequest(markers=[marker]).refused(code, "no").markers]
    assert [(each.partition, each.error) for each in topic.partitions] == [(0, code), (7, code)]
    described = DescribeTransactionsRequest(transactional_ids=["x", "y"]).refused(code, "no").transactions
    assert [(each.transactional_id, each.error, each.state) for each in described] == [("x", code, ""), ("y", code, "")]


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
