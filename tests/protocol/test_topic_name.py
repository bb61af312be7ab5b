"""Kafka's rules for topic names."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.topic_name import collision_key, has_collision_characters, is_internal, validate_topic_name


@pytest.mark.parametrize("name", ["a", "A-b_c.9", "...", "-", "x" * 249, "__consumer_offsets"])
def test_legal_names(name: str) -> None:
    validate_topic_name(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "empty"),
        (".", "not allowed"),
        ("..", "not allowed"),
        ("x" * 250, "longer than the max allowed length 249"),
        ("../x", "other than ASCII"),
        ("a/b", "other than ASCII"),
        ("a b", "other than ASCII"),
        ("a\n", "other than ASCII"),
        ("naïve", "other than ASCII"),
        ("\u0661", "other than ASCII"),
        ("a\0", "other than ASCII"),
    ],
)
def test_illegal_names_are_invalid_topics(name: str, reason: str) -> None:
    with pytest.raises(BrokerError, match=reason) as caught:
        validate_topic_name(name)
    assert caught.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_names_that_differ_in_dots_and_underscores_collide() -> None:
    assert collision_key("a.b") == collision_key("a_b")
    assert collision_key("a_b.c") == collision_key("a.b_c")
    assert collision_key("a.b") != collision_key("a-b")
    assert has_collision_characters("a.b")
    assert not has_collision_characters("a-b")


def test_internal_topics_are_known_by_name() -> None:
    assert is_internal("__transaction_state")
    assert not is_internal("orders")
