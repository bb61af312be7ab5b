"""The answer to ApiVersions, which each new connection of a client asks for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from barnabas.broker.handlers.cluster.api_versions import ApiVersionsHandler
from barnabas.broker.metadata.view import MetadataView
from barnabas.broker.network.session import Session
from barnabas.config.listeners import Listener
from barnabas.protocol.messages.cluster.api_versions import ApiVersionsRequest


def test_an_answer_is_encoded_once_for_each_image_version_and_kind_of_client() -> None:
    store = SimpleNamespace(cluster_id="c", node_id=1, image=SimpleNamespace(level=None))
    handler = ApiVersionsHandler(cast(MetadataView, store), True, 1 << 20, False, False)

    def answer(version: int = 3, client: str = "librdkafka") -> Any:
        session = Session(Listener("PLAINTEXT", "127.0.0.1", 0), "PLAINTEXT")
        return handler(session, ApiVersionsRequest(client=client, client_version="1", version=version))

    first = answer()
    assert answer() is first
    assert len({id(each) for each in (first, answer(4), answer(client="barnabas"))}) == 3
    store.image = SimpleNamespace(level=None)
    assert answer() is not first
    assert answer().encode(3) == first.encode(3)
