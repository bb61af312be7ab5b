"""The tables of Kafka's messages: every field of every version as kio and Kafka have it; hostile bytes do no harm."""

from __future__ import annotations

import random
import struct
import types
from importlib import import_module

import pytest

from barnabas.protocol.errors import BrokerError, DecodeError
from barnabas.protocol.kafka import schema as module
from barnabas.protocol.kafka.apis import KAFKA_APIS, KafkaApi
from barnabas.protocol.kafka.schema import (
    BOOL,
    INT16,
    INT32,
    STRING,
    Array,
    Constant,
    Message,
    Tagged,
    rows,
)
from barnabas.protocol.messages.api_key import ApiKey
from tests.support.kafka.declared import DECLARED
from tests.support.kafka.definitions import NEWEST
from tests.support.kafka.drawing import drawn
from tests.support.kafka.shapes import JUDGES, shape_of_message, shape_of_table

BY_HAND = {ApiKey.PRODUCE, ApiKey.FETCH}
VERSIONS = [
    pytest.param(api, version, id=f"{api.key.label}-v{version}")
    for api in KAFKA_APIS
    if api.key not in BY_HAND and api.key not in DECLARED
    for version in range(api.lowest, api.highest + 1)
]
UNWRITTEN_TAGS = {"zk_migration_ready"}
"""Tagged fields of answers that always have their default."""


def message_of(api: KafkaApi, version: int, kind: str) -> Message | None:
    """The table of a request or answer; None for an answer that is written by hand."""
    codec = import_module(api.module)
    message: Message | None = getattr(codec, kind.upper(), None)
    return message


@pytest.mark.parametrize("kind", ["request", "response"])
@pytest.mark.parametrize(("api", "version"), VERSIONS)
def test_a_table_has_the_fields_of_kafkas_message_definition(api: KafkaApi, version: int, kind: str) -> None:
    message = message_of(api, version, kind)
    if message is None:
        assert (api.key, kind) == (ApiKey.METADATA, "response")
        return
    assert (version >= message.flexible_from) == (version >= api.flexible_from)
    ours = shape_of_table(message.body, version), version >= message.flexible_from
    for judge in JUDGES:
        assert ours == shape_of_message(judge, api.key.label, version, kind, UNWRITTEN_TAGS), judge


@pytest.mark.parametrize(("api", "version"), VERSIONS)
def test_reads_every_field_of_a_request(api: KafkaApi, version: int) -> None:
    """Every request that kio and Kafka's definitions write is read up to its last byte."""
    message = message_of(api, version, "request")
    assert message is not None
    read = message.body.reader(version, version >= message.flexible_from)
    rng = random.Random(f"{api.key} {version}")
    for turn in range(20):
        body = module.Body(drawn(JUDGES[turn % len(JUDGES)], api.key.label, version, "request", rng))
        read(body)
        assert body.remaining == 0


TABLE = Message(5, dict, topics=rows(dict, name=STRING), timeout_ms=INT32, validate_only=BOOL)
HOSTILE = [
    (TABLE, 7, b"\xff\xff\xff\xff\x0f", "topics: an array of 4294967294 items, but 0 bytes are left"),
    (TABLE, 7, b"\x02\x7fab", "topics: name: 126 bytes asked"),
    (TABLE, 7, b"\x02\x00", "topics: name: a string that is null"),
    (TABLE, 7, b"\x00", "topics: an array that is null"),
    (TABLE, 7, b"\x01\x00\x00", "timeout_ms: a field of 4 bytes, but 2 bytes are left"),
    (TABLE, 7, b"\x01\x00\x00\x00\x00\x00\xff\xff\xff\xff\x0f", "tagged fields: varint at position 11"),
]


@pytest.mark.parametrize(("message", "version", "data", "sentence"), HOSTILE)
def test_an_invalid_request_is_a_decode_error_that_names_the_field(
    message: Message, version: int, data: bytes, sentence: str
) -> None:
    with pytest.raises(DecodeError) as caught:
        message.read(version, memoryview(data))
    assert str(caught.value).startswith(sentence)


def test_the_items_of_nested_arrays_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ITEMS", 3)
    message = Message(9, tuple, _items=rows(tuple, _numbers=Array(INT16)))
    data = b"\x00\x00\x00\x02" + b"\x00\x00\x00\x01\x00\x00" * 2
    with pytest.raises(DecodeError, match="more than 3 array items"):
        message.read(0, memoryview(data))


def test_a_null_that_a_field_cannot_hold_is_not_written() -> None:
    for kind in (STRING, Array(INT32), INT32):
        with pytest.raises((AttributeError, TypeError, struct.error)):
            Message(0, value=Constant(kind, None)).write(0, None)


def test_a_tagged_field_with_its_default_is_not_written() -> None:
    message = Message(0, flag=Tagged(BOOL, tag=3, default=False))
    assert message.write(0, types.SimpleNamespace(flag=False)) == b"\x00"
    assert message.write(0, types.SimpleNamespace(flag=True)) == b"\x01\x03\x01\x01"


def test_mutated_requests_raise_decode_errors_and_nothing_else() -> None:
    rng = random.Random("mutations")
    for param in VERSIONS:
        api, version = param.values
        assert isinstance(api, KafkaApi)
        assert isinstance(version, int)
        codec = import_module(api.module)
        original = drawn(NEWEST, api.key.label, version, "request", rng)
        for turn in range(30):
            data = bytearray(original)
            for _ in range(rng.randint(1, 3)):
                if data:
                    data[rng.randrange(len(data))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
            if rng.random() < 0.3:
                del data[rng.randrange(len(data) + 1) :]
            try:
                codec.decode_request(version, memoryview(bytes(data)))
            except (DecodeError, BrokerError):
                continue
            except Exception as error:
                error.add_note(f"{api.key.label} v{version} turn {turn}: {bytes(data)!r}")
                raise
