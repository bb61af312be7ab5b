"""The cluster, pages of topics, producers and resources with configs in Kafka's protocol, every version both ways."""

from __future__ import annotations

import pytest
from kio.index import load_request_schema

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.apis import KAFKA_APIS
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.topics.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicToDescribe
from tests.protocol.kafka.codecs import decoded, refused

PAGE, PRODUCERS, RESOURCES = (
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    ApiKey.DESCRIBE_PRODUCERS,
    ApiKey.LIST_CONFIG_RESOURCES,
)
ID = bytes(range(16))


def test_every_row_of_the_table_is_flexible_where_kafkas_messages_are() -> None:
    for api in KAFKA_APIS:
        for version in range(api.lowest, api.highest + 1):
            is_flexible = load_request_schema(int(api.key), version).__flexible__
            assert is_flexible == (version >= api.flexible_from), f"{api.key.label} v{version}"


def test_a_refusal_of_a_page_is_one_of_every_topic() -> None:
    topics = [TopicToDescribe(name=name) for name in ("a", "b")]
    answer = refused(PAGE, 0, DescribeTopicPartitionsRequest(topics=topics), ErrorCode.INVALID_REQUEST, "no")
    assert [(each["name"], each["error_code"]) for each in answer["topics"]] == [("a", 42), ("b", 42)]


@pytest.mark.parametrize(("version", "types", "expected"), [(0, (), [16]), (1, (), [2, 4, 8, 16, 32]), (1, (2,), [2])])
def test_no_types_of_resources_are_all_but_in_version_0(
    version: int, types: tuple[int, ...], expected: list[int]
) -> None:
    assert list(decoded(RESOURCES, version, resource_types=types).wanted) == expected
