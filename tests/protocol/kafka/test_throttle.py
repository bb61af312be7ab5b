"""throttle_time_ms in the responses of every API and version, compared with kio's encoding of it."""

from __future__ import annotations

import struct
import typing
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode as KioError
from kio.schema.index import schema_name_map

from barnabas.protocol.kafka.apis import KAFKA_APIS
from barnabas.protocol.kafka.throttle import with_throttle
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.api_versions import ApiVersionRange, ApiVersionsResponse, SupportedFeature
from tests.support.kafka.kafka_wire import message_type, read, written

THROTTLE_MS = 0x01020304

VERSIONS = [(key, version) for key in ApiKey for version in sorted(schema_name_map.get(key.label, ()))]
"""Of every API that Barnabas names, so that an API added later is compared too."""


def sample(kind: Any, kafka_type: str) -> Any:
    """Return a value of a field: arrays have two entries, texts two characters."""
    arrays = [each for each in (kind, *typing.get_args(kind)) if typing.get_origin(each) is tuple]
    if arrays:
        return (sample(typing.get_args(arrays[0])[0], kafka_type),) * 2
    if kafka_type == "records":
        # They follow the header of a Fetch response: tests/broker/quotas
        return None if type(None) in typing.get_args(kind) else b""
    if kafka_type == "uuid":
        return UUID(int=7)
    if kafka_type == "datetime_i64":
        return datetime(2020, 1, 1, tzinfo=UTC)
    if kafka_type.startswith("timedelta"):
        return timedelta()
    simple = {"error_code": KioError.none, "string": "ab", "bytes": b"cd", "bool": True, "float64": 1.5}
    if kafka_type in simple:
        return simple[kafka_type]
    nested = [each for each in (kind, *typing.get_args(kind)) if is_dataclass(each)]
    return entity(nested[0]) if nested else 5


def entity(kind: Any) -> Any:
    """Return an instance with a value in every field that is not tagged."""
    values = {
        field.name: sample(field.type, field.metadata.get("kafka_type", ""))
        for field in fields(kind)
        if "tag" not in field.metadata
    }
    return kind(**values)


def frame_of(body: bytes, is_flexible: bool) -> bytes:
    header = struct.pack(">i", 9) + bytes(is_flexible)
    return struct.pack(">i", len(header) + len(body)) + header + bytes(body)


@pytest.mark.parametrize(("api", "version"), VERSIONS, ids=lambda each: getattr(each, "label", each))
def test_the_field_is_where_kio_reads_it(api: ApiKey, version: int) -> None:
    kind = message_type(api.label, version, "response")
    is_flexible = kind.__header_schema__.__flexible__
    plain = entity(kind)
    body = bytes(written(plain))
    patched = with_throttle(api, version, frame_of(body, is_flexible), THROTTLE_MS, is_flexible=is_flexible)
    names = {field.name for field in fields(kind)}
    if "throttle_time" not in names:
        assert patched == frame_of(body, is_flexible)
        return
    values = {name: getattr(plain, name) for name in names} | {"throttle_time": timedelta(milliseconds=THROTTLE_MS)}
    assert patched == frame_of(bytes(written(kind(**values))), is_flexible)


@pytest.mark.parametrize("version", range(5))
def test_the_broker_s_own_list_of_apis_carries_it(version: int) -> None:
    features = [SupportedFeature(name="metadata.version", min_version=7, max_version=30)]
    apis = [ApiVersionRange(api=each.key, min_version=0, max_version=each.highest) for each in KAFKA_APIS]
    answer = ApiVersionsResponse(apis=apis, supported_features=features, features_epoch=44)
    body = answer.encode(version)
    frame = with_throttle(ApiKey.API_VERSIONS, version, frame_of(body, False), THROTTLE_MS, is_flexible=False)
    found = read(message_type("api_versions", version, "response"), frame[8:])
    assert version == 0 or found.throttle_time == timedelta(milliseconds=THROTTLE_MS)
    assert len(found.api_keys) == len(apis)


def test_a_time_beyond_int32_is_cut() -> None:
    frame = frame_of(bytes(8), False)
    assert with_throttle(ApiKey.HEARTBEAT, 1, frame, 1 << 40, is_flexible=False)[8:12] == b"\x7f\xff\xff\xff"
