"""Random messages of Kafka, for tests of every field in every version.

request = draw(load_entity_schema("create_topics", 7, EntityType.request), None, random.Random("seed"))
"""

from __future__ import annotations

import random
import types
import uuid
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, get_args, get_origin

from kio.schema.errors import ErrorCode as KafkaError

from tests.support.kafka.definitions import definition, message_name
from tests.support.kafka.kafka_wire import message_type, written

_DRAWN: dict[str, Callable[[random.Random], Any]] = {
    "bool": lambda rng: rng.random() < 0.5,
    "string": lambda rng: "".join(rng.choices("aä-€.Z", k=rng.randrange(9))),
    "bytes": lambda rng: rng.randbytes(rng.randrange(9)),
    "records": lambda rng: rng.randbytes(rng.randrange(9)),
    "error_code": lambda rng: rng.choice(list(KafkaError)),
    "uuid": lambda rng: uuid.UUID(int=rng.getrandbits(128)),
    "float64": lambda rng: rng.random(),
    "datetime_i64": lambda rng: datetime.fromtimestamp(rng.randrange(1 << 31), UTC),
    "timedelta_i32": lambda rng: timedelta(milliseconds=rng.randrange(-5, 1 << 20)),
    "timedelta_i64": lambda rng: timedelta(milliseconds=rng.randrange(-5, 1 << 40)),
}


def draw(annotation: Any, kind: str | None, rng: random.Random) -> Any:
    """Return a random value for a field's annotation and kio type; `kind` is None for a whole message."""
    if get_origin(annotation) is types.UnionType:
        if rng.random() < 0.3:
            return None
        annotation = next(each for each in get_args(annotation) if each is not types.NoneType)
    if get_origin(annotation) is tuple:
        return tuple(draw(get_args(annotation)[0], kind, rng) for _ in range(rng.randrange(4)))
    if is_dataclass(annotation):
        assert isinstance(annotation, type)
        return annotation(
            **{each.name: draw(each.type, each.metadata.get("kafka_type"), rng) for each in fields(annotation)}
        )
    assert kind is not None
    if kind in _DRAWN:
        return _DRAWN[kind](rng)
    bits = int(kind.removeprefix("u").removeprefix("int"))
    return rng.getrandbits(bits - 1)


def drawn(judge: str, api: str, version: int, kind: str, rng: random.Random) -> bytes:
    """Return a random message, written by kio or by the definitions of a version of Kafka."""
    if judge == "kio":
        return written(draw(message_type(api, version, kind), None, rng))
    message = definition(judge, message_name(api, kind), version)
    return message.encode(message.draw(rng))


def mutated(original: bytes, rng: random.Random) -> bytes:
    """Return bytes with one to three of them changed, sometimes cut short."""
    data = bytearray(original)
    for _ in range(rng.randint(1, 3)):
        if data:
            data[rng.randrange(len(data))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
    if rng.random() < 0.3:
        del data[rng.randrange(len(data) + 1) :]
    return bytes(data)
