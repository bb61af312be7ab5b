"""What consumers say to each other in a group: Kafka's bytes, read from strangers."""

from __future__ import annotations

import random

import pytest

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.groups.consumer_protocol import (
    ConsumerProtocolSubscription,
    Subscription,
    decode_assigned,
    decode_subscription,
    encode_assigned,
    encode_subscription,
    subscribed_topics,
)
from barnabas.protocol.topic_partition import TopicPartition

SUBSCRIPTION = bytes.fromhex("0000 00000002 0001 61 0002 6262 ffffffff")
ASSIGNMENT = bytes.fromhex("0000 00000002 0001 61 00000002 00000000 00000003 0002 6262 00000001 00000001 ffffffff")
PARTITIONS = (TopicPartition("a", 0), TopicPartition("a", 3), TopicPartition("bb", 1))


def test_a_subscription_is_the_version_its_topics_by_name_and_no_user_data() -> None:
    assert encode_subscription(Subscription(["a", "bb"], version=0)) == SUBSCRIPTION
    assert subscribed_topics(SUBSCRIPTION) == {"a", "bb"}


def test_a_later_versions_subscription_tells_its_topics_too() -> None:
    owned_generation_and_rack = bytes.fromhex("00000000 00000007 ffff")
    assert subscribed_topics(b"\x00\x03" + SUBSCRIPTION[2:] + owned_generation_and_rack) == {"a", "bb"}


def test_versions_of_later_kafkas_are_written_as_the_newest_by_one_encoder() -> None:
    newest = encode_subscription(Subscription(["a"], version=3))
    for version in range(4, 400):
        data = encode_subscription(Subscription(["a"], version=version))
        assert data == version.to_bytes(2, "big") + newest[2:]
        assert decode_subscription(data) == Subscription(["a"], version=version)
    assert ConsumerProtocolSubscription._encoders.keys() <= set(range(4))


def test_an_assignment_keeps_topics_together() -> None:
    assert encode_assigned([PARTITIONS[0], PARTITIONS[2], PARTITIONS[1]]) == ASSIGNMENT
    assert decode_assigned(ASSIGNMENT) == PARTITIONS
    assert decode_assigned(b"\x00\x03" + ASSIGNMENT[2:]) == PARTITIONS


def test_no_bytes_are_an_assignment_of_nothing() -> None:
    assert decode_assigned(b"") == ()
    assert decode_assigned(encode_assigned([])) == ()


@pytest.mark.parametrize("data", [b"\x00", b"\xff\xff\x00\x00\x00\x00", ASSIGNMENT[:20], b"\0\0\x7f\xff\xff\xff"])
def test_an_assignment_that_is_none_is_a_decode_error(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_assigned(data)


def test_mutated_bytes_raise_decode_errors_and_nothing_else() -> None:
    generator = random.Random("consumer protocol")
    for original, decode in ((SUBSCRIPTION, subscribed_topics), (ASSIGNMENT, decode_assigned)):
        for _ in range(2000):
            data = bytearray(original)
            for _ in range(generator.randint(1, 3)):
                data[generator.randrange(len(data))] = generator.randrange(256)
            try:
                decode(bytes(data[: generator.randint(1, len(data))]))
            except DecodeError:
                pass
