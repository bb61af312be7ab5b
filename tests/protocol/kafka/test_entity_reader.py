"""Request bodies of Kafka's dialect: the same entities as kio's own reader, and no harm from hostile bytes."""

from __future__ import annotations

import random

import pytest
from kio.index import load_entity_schema
from kio.schema.create_topics.v7.request import CreateTopicsRequest
from kio.schema.index import schema_name_map
from kio.schema.metadata.v0.request import MetadataRequest
from kio.serial import entity_reader
from kio.static.constants import EntityType

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.kafka import entity_reader as module
from barnabas.protocol.kafka.entity_reader import read_entity
from tests.support.kafka.drawing import draw
from tests.support.kafka.kafka_wire import written

REQUESTS = [
    (name, version)
    for name, versions in schema_name_map.items()
    for version, kinds in versions.items()
    if EntityType.request in kinds
]


@pytest.mark.parametrize(("name", "version"), REQUESTS, ids=[f"{name}-v{version}" for name, version in REQUESTS])
def test_reads_what_kios_own_reader_reads(name: str, version: int) -> None:
    entity_type = load_entity_schema(name, version, EntityType.request)
    rng = random.Random(f"{name} {version}")
    for _ in range(5):
        entity = draw(entity_type, None, rng)
        data = written(entity)
        assert read_entity(entity_type, memoryview(data)) == entity
        assert entity_reader(entity_type)(data, 0)[0] == entity


HOSTILE = [
    (CreateTopicsRequest, b"\xff\xff\xff\xff\x0f", "topics: an array of 4294967294 items, but 0 bytes are left"),
    (CreateTopicsRequest, b"\x02\x7fab", "topics: name: 126 bytes asked"),
    (CreateTopicsRequest, b"\x02\x00", "topics: name: a string that is null"),
    (CreateTopicsRequest, b"\x00", "topics: an array that is null"),
    (CreateTopicsRequest, b"\x01\x00\x00", "timeout: 4 bytes asked"),
    (CreateTopicsRequest, b"\x01\x00\x00\x00\x00\x00\xff\xff\xff\xff\x0f", "tagged fields: varint at position 11"),
    (MetadataRequest, b"\x7f\xff\xff\xff", "topics: an array of 2147483647 items"),
    (MetadataRequest, b"\x00\x00\x00\x01\x00\x01\xff", "topics: name: a string that is not UTF-8"),
]


@pytest.mark.parametrize(("entity_type", "data", "sentence"), HOSTILE)
def test_what_cannot_be_is_a_decode_error_that_names_the_field(entity_type: type, data: bytes, sentence: str) -> None:
    with pytest.raises(DecodeError) as caught:
        read_entity(entity_type, data)
    assert str(caught.value).startswith(sentence)


def test_more_items_than_a_request_may_have_are_refused_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ITEMS", 10)
    read_entity(MetadataRequest, (10).to_bytes(4, "big") + b"\x00\x01t" * 10)
    with pytest.raises(DecodeError, match="more than 10 array items in one request"):
        read_entity(MetadataRequest, (11).to_bytes(4, "big") + b"\x00\x01t" * 11)


def test_an_unknown_tagged_field_is_skipped() -> None:
    plain = written(CreateTopicsRequest(topics=(), validate_only=True))
    assert read_entity(CreateTopicsRequest, plain[:-1] + b"\x01\x63\x02ab").validate_only


def test_mutated_requests_raise_decode_errors_and_nothing_else() -> None:
    rng = random.Random("mutations")
    for name, version in REQUESTS:
        entity_type = load_entity_schema(name, version, EntityType.request)
        original = written(draw(entity_type, None, rng))
        for turn in range(30):
            data = bytearray(original)
            for _ in range(rng.randint(1, 3)):
                if data:
                    data[rng.randrange(len(data))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
            if rng.random() < 0.3:
                del data[rng.randrange(len(data) + 1) :]
            try:
                read_entity(entity_type, bytes(data))
            except DecodeError:
                continue
            except Exception as error:
                error.add_note(f"{name} v{version} turn {turn}: {bytes(data)!r}")
                raise
