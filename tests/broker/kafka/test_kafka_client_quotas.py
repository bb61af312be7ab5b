"""DescribeClientQuotas against an image with quotas, and over the wire."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.broker.handlers.cluster.describe_client_quotas import DescribeClientQuotasHandler
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.image_builder import ImageBuilder
from barnabas.broker.network.session import Session
from barnabas.config.listeners import Listener
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.security.client_quotas import DescribeClientQuotasRequest, QuotaFilter, pairs_of
from tests.support.daemon import Daemon
from tests.support.kafka.kafka_wire import KafkaWire, schema
from tests.support.storage.security_records import quota_record, scram_record

EXACT, DEFAULT, SPECIFIED = range(3)


def described(*filters: tuple[str, int, str | None], strict: bool = False) -> list[tuple[Any, Any]]:
    builder = ImageBuilder(MetadataImage())
    for record in (
        scram_record(),
        quota_record("request_percentage", 0.0, user="dave", remove=True),
        quota_record("producer_byte_rate", 1024.0, user="alice"),
        quota_record("consumer_byte_rate", 2048.0, user="alice"),
        quota_record("producer_byte_rate", 5.0, client_id="c", user="alice"),
        quota_record("request_percentage", 50.0, user=None),
        quota_record("connection_creation_rate", 7.0, ip="10.0.0.1"),
    ):
        builder.apply(record)
    store = SimpleNamespace(image=builder.build())
    request = DescribeClientQuotasRequest(
        filters=[
            QuotaFilter(entity_type=kind, match_type=match_type, match=match) for kind, match_type, match in filters
        ],
        strict=strict,
    )
    answer = DescribeClientQuotasHandler(cast(Any, store))(Session(Listener("PLAINTEXT", "127.0.0.1", 0)), request)
    assert answer.entries is not None
    return [(dict(pairs_of(each.entity)), {limit.key: limit.value for limit in each.values}) for each in answer.entries]


ALICE = ({"user": "alice"}, {"producer_byte_rate": 1024.0, "consumer_byte_rate": 2048.0})
HER_CLIENT = ({"client-id": "c", "user": "alice"}, {"producer_byte_rate": 5.0})
ALL_USERS = ({"user": None}, {"request_percentage": 50.0})
ADDRESS = ({"ip": "10.0.0.1"}, {"connection_creation_rate": 7.0})


def test_quotas_are_found_by_their_entity() -> None:
    assert described() == [ALICE, HER_CLIENT, ALL_USERS, ADDRESS]
    assert described(("user", EXACT, "alice")) == [ALICE, HER_CLIENT]
    assert described(("user", EXACT, "alice"), strict=True) == [ALICE]
    assert described(("user", DEFAULT, None)) == [ALL_USERS]
    assert described(("user", SPECIFIED, None), strict=True) == [ALICE, ALL_USERS]
    assert described(("client-id", SPECIFIED, None), ("user", EXACT, "alice")) == [HER_CLIENT]
    assert described(("ip", EXACT, "10.0.0.1")) == [ADDRESS]


@pytest.mark.parametrize(
    ("filters", "code"),
    [
        ([("", EXACT, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([("user", DEFAULT, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", 3, None)], ErrorCode.INVALID_REQUEST),
        ([("user", DEFAULT, None)] * 2, ErrorCode.INVALID_REQUEST),
        ([("ip", DEFAULT, None), ("user", DEFAULT, None)], ErrorCode.INVALID_REQUEST),
        ([("group", DEFAULT, None)], ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_a_contradictory_filter_is_refused(filters: list[tuple[str, int, str | None]], code: ErrorCode) -> None:
    with pytest.raises(BrokerError) as refused:
        described(*filters)
    assert refused.value.code == code


@pytest.mark.parametrize("version", [0, 1])
def test_a_broker_without_quotas_answers_none(daemon: Daemon, version: int) -> None:
    kinds = schema("describe_client_quotas", version, "request")
    bad = (kinds.ComponentData(entity_type="", match_type=EXACT, match="a"),)
    with KafkaWire(daemon.host, daemon.port) as kafka:
        answer = kafka.call("describe_client_quotas", version, components=(), strict=False)
        assert (answer.error_code, answer.error_message, answer.entries) == (ErrorCode.NONE, None, ())
        answer = kafka.call("describe_client_quotas", version, components=bad, strict=True)
        assert (answer.error_code, answer.entries) == (ErrorCode.INVALID_REQUEST, None)
