"""ApiVersions lists Barnabas' own APIs to Barnabas' clients only."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.broker.handlers.cluster.api_versions import ApiVersionsHandler
from barnabas.broker.metadata.view import MetadataView
from barnabas.broker.network.session import Session
from barnabas.config.listeners import Listener
from barnabas.protocol.kafka.apis import KAFKA_APIS, KafkaApi
from barnabas.protocol.kafka.cluster import api_versions
from barnabas.protocol.messages.api_key import OWN_KEYS, ApiKey
from barnabas.protocol.messages.cluster.api_versions import ApiVersionsRequest
from tests.support.kafka.kafka_wire import answer_of


@pytest.mark.parametrize(
    ("version", "client", "is_listed"),
    [
        (3, "barnabas", True),
        (4, "barnabas", True),
        (4, "librdkafka", False),
        (4, "barnabas-python", False),
        (2, "", False),
    ],
)
def test_own_apis_are_listed_to_clients_whose_software_is_barnabas(
    monkeypatch: pytest.MonkeyPatch, version: int, client: str, is_listed: bool
) -> None:
    own = KafkaApi(ApiKey.MIRRORS, 0, 0, 0, "cluster")
    monkeypatch.setattr(api_versions, "KAFKA_APIS", (*KAFKA_APIS, own))
    store = cast(MetadataView, SimpleNamespace(cluster_id="c", node_id=1, image=None))
    handler = ApiVersionsHandler(store, True, 1 << 20, False)
    session = Session(Listener("PLAINTEXT", "127.0.0.1", 0), "PLAINTEXT")

    def listed(software: str) -> set[int]:
        body: Any = api_versions.encode_response(version, handler(session, ApiVersionsRequest(software, "1")))
        return {each.api_key for each in answer_of("api_versions", version, bytes(4) + body)[1].api_keys}

    others = listed("other" if client else "")
    assert not others.intersection(OWN_KEYS)
    assert listed(client) == (others | {10_000} if is_listed else others)
