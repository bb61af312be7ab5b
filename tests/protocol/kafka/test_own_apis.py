"""The messages of Barnabas' own APIs in Kafka's wire format: what is written is read, and hostile bytes are refused."""

from __future__ import annotations

import random
from typing import Any

import pytest

from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.kafka.apis import KAFKA_APIS, OWN_APIS
from barnabas.protocol.messages.api_key import OWN_KEYS, ApiKey
from barnabas.protocol.wire.structures import Request, Struct
from tests.support.kafka.routes import ROUTES
from tests.support.own_exchanges import OWN_EXCHANGES

EXCHANGES = OWN_EXCHANGES


def test_own_apis_have_keys_that_kafka_does_not_have() -> None:
    assert {api.key for api in OWN_APIS} == {key for key in ApiKey if key in OWN_KEYS}
    assert not {api.key for api in KAFKA_APIS}.intersection(OWN_KEYS)


@pytest.mark.parametrize(("api", "request_", "response"), EXCHANGES, ids=[api.label for api, _, _ in EXCHANGES])
def test_requests_and_answers_survive_a_round_trip(api: ApiKey, request_: Request[Any], response: Struct) -> None:
    route = ROUTES[api, 0]
    assert route.decode(0, memoryview(request_.encode(0))) == request_
    body: Any = route.encode(response)
    assert type(response).decode_whole(0, body) == response


@pytest.mark.parametrize(("api", "request_", "response"), EXCHANGES, ids=[api.label for api, _, _ in EXCHANGES])
def test_an_api_refuses_a_whole_request_with_its_own_answer(
    api: ApiKey, request_: Request[Any], response: Struct
) -> None:
    body: Any = ROUTES[api, 0].refusal(request_, ErrorCode.THROTTLING_QUOTA_EXCEEDED, "too many")
    found: Any = type(response).decode_whole(0, body)
    assert (found.error, found.message) == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, "too many")


@pytest.mark.parametrize(("api", "request_", "response"), EXCHANGES, ids=[api.label for api, _, _ in EXCHANGES])
def test_mutated_bytes_raise_decode_errors_and_nothing_else(
    api: ApiKey, request_: Request[Any], response: Struct
) -> None:
    chance = random.Random(f"own-{api.label}")
    for value in (request_, response):
        whole = value.encode(0)
        for _ in range(200):
            data = bytearray(whole)
            for _ in range(chance.randint(1, 3)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            try:
                type(value).decode(0, bytes(data[: chance.randint(0, len(data))]))
            except DecodeError:
                continue
