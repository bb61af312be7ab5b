"""Requests as a client writes them and answers as it reads them, for the codecs of Kafka's protocol."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from datetime import timedelta
from typing import Any

from barnabas.protocol.kafka.apis import KAFKA_APIS, KafkaApi
from barnabas.protocol.messages.api_key import ApiKey
from tests.support.kafka.kafka_wire import message_type, read, schema, written
from tests.support.kafka.routes import ROUTES

SECOND = timedelta(seconds=1)


def api_of(key: ApiKey) -> KafkaApi:
    """The row of the table."""
    return next(api for api in KAFKA_APIS if api.key == key)


def versions_of(*keys: ApiKey) -> list[tuple[ApiKey, int]]:
    """Every version that is served of these, for parametrize."""
    return [(key, version) for key in keys for version in range(api_of(key).lowest, api_of(key).highest + 1)]


def row(key: ApiKey, version: int, kind: str, /, **values: Any) -> Any:
    """A structure of a request, without the fields that this version lacks."""
    return _of(getattr(schema(api_of(key).key.label, version, "request"), kind), values)


def decoded(key: ApiKey, version: int, **values: Any) -> Any:
    """The neutral request that the broker makes of a client's."""
    entity = _of(message_type(api_of(key).key.label, version, "request"), values)
    return ROUTES[key, version].decode(version, memoryview(written(entity)))


def encoded(key: ApiKey, version: int, response: Any) -> dict[str, Any]:
    """What a client reads of the broker's answer: maps, lists and plain values."""
    data: Any = ROUTES[key, version].encode(response)
    return _plain(read(message_type(api_of(key).key.label, version, "response"), data))


def refused(key: ApiKey, version: int, request: Any, code: Any, message: str) -> dict[str, Any]:
    """What a client reads when its request is refused as a whole."""
    data: Any = ROUTES[key, version].refusal(request, code, message)
    return _plain(read(message_type(api_of(key).key.label, version, "response"), data))


def _of(kind: Any, values: dict[str, Any]) -> Any:
    known = {field.name for field in fields(kind)}
    return kind(**{name: value for name, value in values.items() if name in known})


def _plain(entity: Any) -> dict[str, Any]:
    return {field.name: _value(getattr(entity, field.name)) for field in fields(entity)}


def _value(value: Any) -> Any:
    if is_dataclass(value):
        return _plain(value)
    return [_value(each) for each in value] if isinstance(value, tuple) else value


def subset(expected: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """`expected` without the fields that `found`'s version does not have."""
    return {name: value for name, value in expected.items() if name in found}
