"""Stored forms of definitions and of mirrored topics: round trips, and the sentence for each wrong field."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.mirrors.definition import DesiredState, MirrorDefinition, definition_of, parse_definition
from barnabas.protocol.mirrors.fields import MirrorFormatError
from barnabas.protocol.mirrors.promotion import PartitionPromotion, TopicPromotion, Undecided, parse_promotion
from barnabas.protocol.mirrors.topic import TopicMirror, TopicMirrorState, parse_topic_mirror

LEAST: dict[str, Any] = {"bootstrap": ["a:9092"], "topics": ["orders.*"]}
FULL = MirrorDefinition(
    "east",
    ("a:9092", "[::1]:9093"),
    ("orders.*", "bills"),
    ("readers",),
    "/etc/barnabas/east.properties",
    "1767225600000",
    False,
    1 << 40,
    True,
    ("bills",),
    60_000,
    DesiredState.PAUSED,
)


def test_a_definition_is_read_as_it_was_written() -> None:
    assert parse_definition("east", FULL.text()) == FULL
    assert definition_of("east", LEAST) == MirrorDefinition("east", ("a:9092",), ("orders.*",))


def test_the_stored_text_does_not_depend_on_the_order_of_fields() -> None:
    fields = dict(reversed(list(FULL.fields().items())))
    assert definition_of("east", fields).text() == FULL.text()
    assert " " not in FULL.text()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"passwort": "x"}, "unknown field passwort; known are bootstrap, topics"),
        ({"bootstrap": []}, "bootstrap is empty"),
        ({"bootstrap": ["a"]}, "bootstrap: 'a' is not host:port"),
        ({"bootstrap": ["a:65536"]}, "bootstrap: 'a:65536' is not host:port"),
        ({"bootstrap": "a:9092"}, "bootstrap is not a list of texts"),
        ({"take_existing": ["\ud800"]}, "not UTF-8: it has a lone surrogate"),
        ({"topics": []}, "topics is empty"),
        ({"groups": [1]}, "groups is not a list of texts"),
        ({"start": "yesterday"}, "start: 'yesterday' is not earliest, latest, a time"),
        ({"follow_configs": 1}, "follow_configs is neither true nor false"),
        ({"max_bytes_per_second": 0}, "max_bytes_per_second is not a number of bytes above 0"),
        ({"max_bytes_per_second": True}, "max_bytes_per_second is not a number of bytes above 0"),
        ({"desired": "asleep"}, "desired is not one of running, paused, promoted"),
        ({"topics": ["x" * 33_000]}, "longer than 32767 bytes"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(MirrorFormatError, match=sentence):
        definition_of("east", {**LEAST, **change})


@pytest.mark.parametrize("name", ["", "a b", "x" * 101, "a/b", "ä"])
def test_an_illegal_name_is_refused(name: str) -> None:
    with pytest.raises(MirrorFormatError, match="a mirror's name has 1 to 100 characters"):
        definition_of(name, LEAST)


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("earliest", "earliest"),
        ("latest", "latest"),
        ("7", "7"),
        ("2026-01-01", "1767225600000"),
        ("2026-01-01T01:00:00+01:00", "1767225600000"),
        ("2026-01-01T00:00:00Z", "1767225600000"),
        ("2026-01-01T00:00:00-01:00", "1767229200000"),
    ],
)
def test_a_start_is_a_word_or_a_time(text: str, start: str) -> None:
    assert definition_of("east", {**LEAST, "start": text}).start == start


@pytest.mark.parametrize(
    "promoted",
    [
        None,
        TopicPromotion(),
        TopicPromotion(
            Undecided.ABORT,
            7,
            {1: (4711, 2**40)},
            {0: PartitionPromotion(5, 3, 5), 1: PartitionPromotion(9, -1, 11, 1, 0, 2)},
        ),
    ],
)
@pytest.mark.parametrize("source_id", [None, bytes(range(16))])
def test_a_mirrored_topic_is_read_as_it_was_written(source_id: bytes | None, promoted: TopicPromotion | None) -> None:
    for state in TopicMirrorState:
        mirrored = TopicMirror("east", bytes([9] * 16), source_id, state, promoted)
        assert parse_topic_mirror(mirrored.text()) == mirrored


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"mirror":"east","topic_id":"x","state":"mirrored"}', "topic_id: 'x' is not a topic id"),
        ('{"mirror":"east","topic_id":"AAAAAAAAAAAAAAAAAAAAAA","state":"lost"}', "state is not one of"),
        ('{"mirror":1,"topic_id":"AAAAAAAAAAAAAAAAAAAAAA","state":"failed"}', "mirror is not a text"),
        ('{"mirror":"e","topic_id":"AAAAAAAAAAAAAAAAAAAAAA","state":"failed","x":1}', "unknown field x"),
    ],
)
def test_a_wrong_topic_record_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(MirrorFormatError, match=sentence):
        parse_topic_mirror(text)


def test_rows_of_too_many_partitions_are_left_out() -> None:
    rows = {number: PartitionPromotion(10**12 + number, 5, 10**12 + number, 1, 1, 1) for number in range(3000)}
    topic = TopicMirror(
        "east", bytes([9] * 16), None, TopicMirrorState.PROMOTED, TopicPromotion(leader_epoch=7, partitions=rows)
    )
    found = parse_topic_mirror(topic.text()).promoted
    assert found is not None
    assert 0 < len(found.partitions) < len(rows)
    assert all(found.partitions[number] == rows[number] for number in found.partitions)


@pytest.mark.parametrize(
    "fields",
    [
        {"undecided": "guess"},
        {"leader_epoch": "7"},
        {"commits": {"x": [1]}},
        {"partitions": {"0": ["1", 2, 3]}},
        {"other": 1},
    ],
)
def test_a_damaged_promotion_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(MirrorFormatError):
        parse_promotion(fields)
