"""Random and corrupted frames of Kafka's admin APIs: the broker stays up, and no handler or encoder hits a bug.

The frames come from a seeded generator; a failure message contains its seed and number.
"""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest
from kio.index import load_entity_schema
from kio.static.constants import EntityType

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.apis import KAFKA_APIS, KafkaApi
from barnabas.protocol.messages.api_key import ApiKey
from tests.support.daemon import Daemon
from tests.support.kafka.drawing import draw
from tests.support.kafka.kafka_wire import KafkaWire, framed, request_frame, schema

ADMIN = [api for api in KAFKA_APIS if api.key >= ApiKey.CREATE_TOPICS and api.key != ApiKey.INIT_PRODUCER_ID]
FRAMES = 60
LONG = "n" * 32_767


@pytest.mark.parametrize("api", ADMIN, ids=lambda api: api.key.label)
def test_any_request_is_answered_and_a_spoiled_one_at_most_closes_its_connection(daemon: Daemon, api: KafkaApi) -> None:
    seed = f"admin-{api.key.label}"
    rng = random.Random(seed)
    kafka = KafkaWire(daemon.host, daemon.port)
    for turn in range(FRAMES):
        version = rng.randint(api.lowest, api.highest)
        request = draw(load_entity_schema(api.key.label, version, EntityType.request), None, rng)
        frame = bytearray(request_frame(request, turn))[4:]
        is_spoiled = rng.random() < 0.5
        if is_spoiled:
            frame[rng.randrange(12, len(frame))] = rng.randrange(256)
        kafka.socket.sendall(framed(bytes(frame)))
        try:
            kafka.receive_frame()
        except ConnectionError:
            assert is_spoiled, f"seed {seed} turn {turn}: {request}"
            kafka.socket.close()
            kafka = KafkaWire(daemon.host, daemon.port)
    kafka.socket.close()
    assert "a bug" not in daemon.log
    with KafkaWire(daemon.host, daemon.port) as neighbour:
        assert neighbour.call("api_versions", 0).error_code == ErrorCode.NONE


def long_names() -> list[tuple[str, int, dict[str, Any]]]:
    """Requests of classic versions with strings of the maximum length."""
    topics = schema("create_topics", 4, "request")
    growth = schema("create_partitions", 1, "request")
    described = schema("describe_configs", 3, "request")
    altered = schema("incremental_alter_configs", 0, "request")
    config = altered.AlterableConfig(name=LONG, config_operation=0, value=LONG)
    second = timedelta(seconds=1)
    new = topics.CreatableTopic(name=LONG, num_partitions=1, replication_factor=1, assignments=(), configs=())
    more = growth.CreatePartitionsTopic(name=LONG, count=2, assignments=None)
    resource = described.DescribeConfigsResource(resource_type=2, resource_name=LONG, configuration_keys=None)
    change = altered.AlterConfigsResource(resource_type=4, resource_name="1", configs=(config,))
    return [
        ("create_topics", 4, {"topics": (new,), "timeout": second, "validate_only": False}),
        ("create_partitions", 1, {"topics": (more,), "timeout": second, "validate_only": False}),
        ("describe_configs", 3, {"resources": (resource,), "include_documentation": True}),
        ("incremental_alter_configs", 0, {"resources": (change,), "validate_only": False}),
    ]


@pytest.mark.parametrize(
    ("api", "version", "fields"), long_names(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_message_that_quotes_a_very_long_name_fits_a_classic_string(
    daemon: Daemon, api: str, version: int, fields: dict[str, Any]
) -> None:
    with KafkaWire(daemon.host, daemon.port) as kafka:
        answer = kafka.call(api, version, **fields)
    (row,) = getattr(answer, "topics", None) or getattr(answer, "results", None) or answer.responses
    assert row.error_code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert "a bug" not in daemon.log
