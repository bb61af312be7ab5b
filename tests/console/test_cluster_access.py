"""A user's connections to a cluster: one login, and pages of Barnabas where ApiVersions lists its APIs."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.clients.config import ClientConfig
from barnabas.console.cluster.access import ClusterAccess
from barnabas.protocol.messages.api_key import OWN_KEYS
from tests.clients.fake_broker import FakeBroker


@pytest.mark.parametrize("is_barnabas", [True, False], ids=["Barnabas", "Apache Kafka"])
def test_one_login_tells_whether_the_broker_is_barnabas(*, is_barnabas: bool) -> None:
    async def scenario() -> None:
        async with FakeBroker() as broker:
            if not is_barnabas:
                broker.apis = {key: versions for key, versions in broker.apis.items() if key not in OWN_KEYS}
            access = await ClusterAccess.open(ClientConfig(bootstrap=broker.bootstrap), 10.0)
            assert access.is_barnabas is is_barnabas
            await access.kafka.load(None)
            assert broker.connections_made == 1
            await access.close()

    asyncio.run(scenario())
