"""Declared messages against their judges: kio, and the definitions in the jars of each version of Kafka."""

from __future__ import annotations

import random

import pytest

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.kafka.apis import KAFKA_APIS, KafkaApi
from barnabas.protocol.wire import source
from barnabas.protocol.wire.decoding import write_reader
from barnabas.protocol.wire.encoding import write_encoder
from tests.support.kafka.declared import DECLARED, compare_fields, shape_of_structure
from tests.support.kafka.definitions import NEWEST, load, message_name
from tests.support.kafka.drawing import drawn, mutated
from tests.support.kafka.shapes import JUDGES, shape_of_message

VERSIONS = [
    pytest.param(api, version, id=f"{api.key.label}-v{version}")
    for api in KAFKA_APIS
    for version in range(api.lowest, api.highest + 1)
]


@pytest.mark.parametrize("kind", ["request", "response"])
@pytest.mark.parametrize(("api", "version"), VERSIONS)
def test_a_message_has_the_fields_of_kafkas_definition(api: KafkaApi, version: int, kind: str) -> None:
    structure = DECLARED[api.key][kind]
    assert structure.flexible_from == api.flexible_from
    assert api.request.api_key == api.key
    ours = shape_of_structure(structure, version), version >= structure.flexible_from
    for judge in JUDGES:
        assert ours == shape_of_message(judge, api.key.label, version, kind), judge


@pytest.mark.parametrize("kind", ["request", "response"])
@pytest.mark.parametrize(("api", "version"), VERSIONS)
def test_a_message_is_read_to_its_end_and_written_back(
    api: KafkaApi, version: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(source._RUNTIME, "known_error", int)  # codes that Barnabas does not know, too
    structure = DECLARED[api.key][kind]
    flexible = version >= structure.flexible_from
    read, encode = write_reader(structure, version, flexible), write_encoder(structure, version, flexible)
    rng = random.Random(f"{api.key} {version} {kind}")
    for turn in range(20):
        data = drawn(JUDGES[turn % len(JUDGES)], api.key.label, version, kind, rng)
        assert encode(read(memoryview(data))) == data
        for cut in rng.sample(range(len(data)), min(3, len(data))):
            with pytest.raises(DecodeError):
                read(memoryview(data)[:cut])


@pytest.mark.parametrize("api", KAFKA_APIS, ids=lambda api: api.key.label)
def test_a_field_has_the_versions_and_the_default_of_kafkas_definition(api: KafkaApi) -> None:
    for kind, structure in DECLARED[api.key].items():
        message = load(NEWEST)[message_name(api.key.label, kind)]
        common = {each["name"]: each["fields"] for each in message.get("commonStructs", [])}
        compare_fields(structure, message["fields"], range(api.lowest, api.highest + 1), common)


@pytest.mark.parametrize(("api", "version"), VERSIONS)
def test_mutated_messages_raise_decode_errors_and_nothing_else(api: KafkaApi, version: int) -> None:
    rng = random.Random(f"mutations {api.key} {version}")
    for kind, structure in DECLARED[api.key].items():
        original = drawn(NEWEST, api.key.label, version, kind, rng)
        for _ in range(30):
            data = mutated(original, rng)
            try:
                structure.decode(version, data)
            except DecodeError:
                continue
