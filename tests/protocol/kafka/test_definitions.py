"""The codec of Kafka's definitions agrees with kio; the table of APIs agrees with the definitions."""

from __future__ import annotations

import random
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import UUID

import kio.schema
import pytest

from barnabas.protocol.kafka.apis import KAFKA_APIS
from tests.protocol.kafka.differences import OLDER_VERSIONS, UNSERVED
from tests.support.kafka.definitions import NEWEST, VERSIONS, definition, header, load, message_name, versions
from tests.support.kafka.drawing import draw
from tests.support.kafka.kafka_wire import read, written

FOLDER = Path(kio.schema.__file__).parent


def entities() -> list[Any]:
    """Every message of kio in its lowest version, which is classic if one is, and in its highest."""
    found = []
    for folder in FOLDER.iterdir():
        numbers = sorted(int(each.name[1:]) for each in folder.glob("v*"))
        for number in dict.fromkeys(numbers[:1] + numbers[-1:]):
            for path in (folder / f"v{number}").glob("[!_]*.py"):
                module = import_module(f"kio.schema.{folder.name}.v{number}.{path.stem}")
                own = [each for each in vars(module).values() if getattr(each, "__module__", "") == module.__name__]
                found += [each for each in own if each.__name__ in load(NEWEST)]
    return found


def leaves(value: Any) -> list[Any]:
    """The basic values of an entity or of a value of the definitions, in the order of its fields."""
    if is_dataclass(value):
        return [leaf for field in fields(value) for leaf in leaves(getattr(value, field.name))]
    if isinstance(value, dict):
        return [leaf for each in value.values() for leaf in leaves(each)]
    if isinstance(value, list | tuple):
        return [len(value), *(leaf for each in value for leaf in leaves(each))]
    match value:
        case timedelta():
            return [value // timedelta(milliseconds=1)]
        case datetime():
            return [round(value.timestamp() * 1000)]
        case UUID():
            return [value.bytes]
        case bytes() if value == bytes(16):  # kio reads the zero uuid as None
            return [None]
    return [value]


def test_every_message_of_kio_has_the_same_bytes_and_values() -> None:
    rng = random.Random("kio")
    compared = 0
    for kind in entities():
        message = definition(NEWEST, kind.__name__, kind.__version__)
        assert message.is_flexible == kind.__flexible__
        if hasattr(kind, "__header_schema__"):
            their_header = kind.__header_schema__
            ours = header(NEWEST, kind.__name__, kind.__version__)
            assert ours == definition(NEWEST, their_header.__name__, their_header.__version__)
        entity = draw(kind, None, rng)
        data = written(entity)
        value = message.decode(data)
        assert message.encode(value) == data, kind
        assert leaves(value) == leaves(entity), kind
        drawn = message.encode(message.draw(rng))
        assert written(read(kind, drawn)) == drawn, kind
        compared += 1
    assert compared > 200


@pytest.mark.parametrize("kafka", VERSIONS)
def test_each_api_is_served_in_the_versions_of_kafka(kafka: str) -> None:
    for api in KAFKA_APIS:
        request = load(kafka)[message_name(api.key.label, "request")]
        theirs = versions(request["validVersions"])
        flexible = versions(request["flexibleVersions"]) or range(theirs.stop, theirs.stop)
        is_unstable = request.get("latestVersionUnstable", False)
        highest = theirs[-1] - is_unstable
        assert (api.key, api.lowest) == (request["apiKey"], theirs[0])
        assert api.flexible_from == flexible.start
        stable = api.highest_for(unstable=False)
        assert (stable < highest) == ((kafka, api.key.label) in OLDER_VERSIONS), api.key.label
        assert stable <= highest
        assert api.is_unstable == (is_unstable and api.highest == theirs[-1])


def test_every_api_of_kafkas_brokers_is_served() -> None:
    ours = {api.key for api in KAFKA_APIS}
    unserved = {
        name.removesuffix("Request")
        for name, each in load(NEWEST).items()
        if "broker" in each.get("listeners", ()) and each["validVersions"] != "none" and each["apiKey"] not in ours
    }
    assert unserved == UNSERVED.keys()


def test_a_field_that_a_version_lacks_is_left_out_only_if_it_may_be_ignored() -> None:
    metadata, api_versions = definition(NEWEST, "MetadataRequest", 3), definition(NEWEST, "ApiVersionsRequest", 2)
    assert api_versions.encode({"ClientSoftwareName": "ignored"}) == b""
    assert metadata.encode({"AllowAutoTopicCreation": True}) == metadata.encode({})
    with pytest.raises(ValueError, match="this version has no AllowAutoTopicCreation"):
        metadata.encode({"AllowAutoTopicCreation": False})
