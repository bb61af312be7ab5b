"""Descriptions of a name that a small request lists many times are refused: the response would have gigabytes."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.broker.handlers.repetitions import DESCRIBED_MAX
from barnabas.protocol.errors import ErrorCode
from tests.support.authorization.entities import request
from tests.support.daemon import Daemon
from tests.support.kafka.kafka_wire import KafkaWire

MANY = DESCRIBED_MAX + 1
FEW = DESCRIBED_MAX

NAMES = ["many"] * MANY + ["few"] * FEW
"""Listed too often, and as often as is allowed."""

GROUP: dict[str, Any] = {"member_id": None, "member_epoch": -1}
GROUPS = [GROUP | {"group_id": name, "topics": None} for name in NAMES]

CASES: dict[str, tuple[int, dict[str, Any], int]] = {
    "describe_groups": (6, {"groups": NAMES, "include_authorized_operations": False}, ErrorCode.GROUP_ID_NOT_FOUND),
    "consumer_group_describe": (
        1,
        {"group_ids": NAMES, "include_authorized_operations": False},
        ErrorCode.GROUP_ID_NOT_FOUND,
    ),
    "describe_transactions": (0, {"transactional_ids": NAMES}, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND),
    "describe_producers": (
        0,
        {"topics": [{"name": "no-topic", "partition_indexes": [0] * MANY + [1] * FEW}]},
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ),
    "offset_fetch": (9, {"groups": GROUPS, "require_stable": False}, ErrorCode.NONE),
}


def results(api: str, response: Any) -> Any:
    match api:
        case "describe_transactions":
            return response.transaction_states
        case "describe_producers":
            return response.topics[0].partitions
        case _:
            return response.groups


@pytest.mark.parametrize("api", CASES)
def test_each_occurrence_of_a_name_that_is_repeated_too_often_is_refused(daemon: Daemon, api: str) -> None:
    version, values, expected = CASES[api]
    with KafkaWire(daemon.host, daemon.port) as kafka:
        kafka.send(request(api, version, values))
        codes = [int(each.error_code) for each in results(api, kafka.receive(api, version))]
    assert codes == [ErrorCode.INVALID_REQUEST] * MANY + [expected] * FEW


def test_a_group_may_be_repeated_with_named_topics(daemon: Daemon) -> None:
    with KafkaWire(daemon.host, daemon.port) as kafka:
        groups = [GROUP | {"group_id": "many", "topics": []}] * MANY
        kafka.send(request("offset_fetch", 9, {"groups": groups, "require_stable": False}))
        assert {int(each.error_code) for each in kafka.receive("offset_fetch", 9).groups} == {0}
