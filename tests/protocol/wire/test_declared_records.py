"""Declared records of internal topics against the definitions in the jars of each version of Kafka."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

import pytest

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.uuids import uuid_text
from barnabas.protocol.wire.fields import Array, fields_of, is_structure
from barnabas.protocol.wire.plain import HIDDEN, plain
from tests.protocol.kafka.differences import UNREAD_FIELDS
from tests.support.kafka.declared import compare_fields, shape_of_structure, tagged_last
from tests.support.kafka.declared_records import DECLARED_RECORDS
from tests.support.kafka.definitions import NEWEST, VERSIONS, Field, Structure, definition, load, versions
from tests.support.kafka.drawing import mutated

RECORDS = [
    pytest.param(kafka, name, version, id=f"{name}-v{version}-{kafka}")
    for kafka in VERSIONS
    for name in DECLARED_RECORDS
    for version in versions(load(kafka)[name]["validVersions"])
]


def unread(name: str) -> list[str]:
    return [field for record, field in UNREAD_FIELDS if record == name]


def head_of(name: str, version: int) -> bytes:
    """The bytes before the fields."""
    head = DECLARED_RECORDS[name].wire_head(version)
    return b"" if head is None else head.to_bytes(2, "big", signed=True)


@pytest.mark.parametrize(("kafka", "name", "version"), RECORDS)
def test_a_record_has_the_fields_of_kafkas_definition(kafka: str, name: str, version: int) -> None:
    structure = DECLARED_RECORDS[name]
    theirs = definition(kafka, name, version)
    fields = [each for each in theirs.fields if each.name not in unread(name)]
    assert (version >= structure.flexible_from) == theirs.is_flexible
    ours, shape = shape_of_structure(structure, version), theirs._replace(fields=tuple(fields)).shape()
    assert tagged_last(ours) == tagged_last(shape)


@pytest.mark.parametrize(("kafka", "name", "version"), RECORDS)
def test_a_record_is_read_to_its_end_and_written_back(kafka: str, name: str, version: int) -> None:
    record, head = definition(kafka, name, version), head_of(name, version)
    rng = random.Random(f"{name} {version}")
    for _ in range(40):
        value = {field: each for field, each in record.draw(rng).items() if field not in unread(name)}
        data = head + record.encode(value)
        assert DECLARED_RECORDS[name].decode_whole(version, data).encode(version) == data


@pytest.mark.parametrize(("kafka", "name", "version"), RECORDS)
def test_a_record_is_json_as_kafkas_converters_write_it(kafka: str, name: str, version: int) -> None:
    record, head = definition(kafka, name, version), head_of(name, version)
    rng = random.Random(f"JSON {name} {version}")
    for _ in range(10):
        value = {field: each for field, each in record.draw(rng).items() if field not in unread(name)}
        found = DECLARED_RECORDS[name].decode_whole(version, head + record.encode(value))
        expected = json_of(record._replace(fields=tuple(each for each in record.fields if each.name in value)), value)
        assert plain(found, version) == expected
        json.dumps(expected)


def json_of(structure: Structure, value: dict[str, Any]) -> dict[str, Any]:
    def one(field: Field, each: Any) -> Any:
        if each is None:
            return None
        if field.structure:
            return json_of(field.structure, each)
        if field.name in ("Salt", "StoredKey", "ServerKey"):
            return HIDDEN
        if field.kind == "uuid":
            return uuid_text(each)
        return base64.b64encode(each).decode() if field.kind == "bytes" else each

    return {
        field.name[0].lower() + field.name[1:]: [one(field, each) for each in value[field.name]]
        if isinstance(value[field.name], list)
        else one(field, value[field.name])
        for field in structure.fields
        if field.tag is None or value[field.name] != field.default
    }


@pytest.mark.parametrize("name", DECLARED_RECORDS)
def test_a_field_has_the_name_the_versions_and_the_default_of_kafkas_definition(name: str) -> None:
    message = load(NEWEST)[name]
    common = {each["name"]: each["fields"] for each in message.get("commonStructs", [])}
    compare_fields(
        DECLARED_RECORDS[name],
        message["fields"],
        versions(message["validVersions"]),
        common,
        unread(name),
        has_names=True,
    )


@pytest.mark.parametrize("name", [name for name, each in DECLARED_RECORDS.items() if each.wire_head(0) is not None])
def test_a_record_of_a_coordinator_has_kafkas_type_or_versions(name: str) -> None:
    message, structure = load(NEWEST)[name], DECLARED_RECORDS[name]
    if message["type"] == "coordinator-key":
        assert structure.number == message["apiKey"]
    else:
        assert range(structure.newest + 1) == versions(message["validVersions"])


@pytest.mark.parametrize(("kafka", "name", "version"), RECORDS)
def test_mutated_records_raise_decode_errors_and_nothing_else(kafka: str, name: str, version: int) -> None:
    rng = random.Random(f"mutations {name} {version}")
    record, head = definition(kafka, name, version), head_of(name, version)
    for _ in range(60):
        data = mutated(head + record.encode(record.draw(rng)), rng)
        try:
            found = DECLARED_RECORDS[name].decode_whole(version, data)
        except DecodeError:
            continue
        found.encode(version)


@pytest.mark.parametrize("name", DECLARED_RECORDS)
def test_equal_records_have_one_hash_because_a_broker_shares_them(name: str) -> None:
    version = max(versions(load(NEWEST)[name]["validVersions"]))
    record = definition(NEWEST, name, version)
    data = head_of(name, version) + record.encode(record.draw(random.Random(name)))
    one, other = (DECLARED_RECORDS[name].decode_whole(version, data) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)


def test_every_structure_of_a_record_is_frozen_and_has_tuples() -> None:
    def check(structure: type) -> None:
        assert structure.__hash__ is not None, structure
        for field in fields_of(structure):
            if isinstance(field.kind, Array):
                assert field.kind.is_tuple, f"{structure.__name__}.{field.name}"
            kind = field.kind.item if isinstance(field.kind, Array) else field.kind
            if is_structure(kind):
                check(kind)

    for structure in DECLARED_RECORDS.values():
        check(structure)
