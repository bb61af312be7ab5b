"""The mechanism by which people sign in, where the console was given none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import AuthenticationError
from barnabas.clients.security.settings import SecuritySettings
from barnabas.console.security import mechanism
from barnabas.protocol.errors import ErrorCode
from barnabas.transport.settings import TlsSettings


class Cluster:
    """A listener that offers mechanisms."""

    offered: tuple[str, ...] = ()

    def __init__(self, config: ClientConfig) -> None:
        self.config = config

    @property
    def connections(self) -> Any:
        return self

    async def any_connection(self) -> Any:
        return self

    def version_of(self, api: object) -> int:
        return 1

    async def request(self, request: object) -> Any:
        return SimpleNamespace(error=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=self.offered)

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("bootstrap", ["broker.example:9092", "127.0.0.1:9092,broker.example:9092"])
async def test_a_listener_elsewhere_does_not_get_passwords_as_they_are(
    monkeypatch: pytest.MonkeyPatch, bootstrap: str
) -> None:
    monkeypatch.setattr(mechanism, "Cluster", Cluster)
    monkeypatch.setattr(Cluster, "offered", ("PLAIN",))
    with pytest.raises(AuthenticationError, match="say --sign-in PLAIN"):
        await mechanism.offered_mechanism(ClientConfig(bootstrap=bootstrap))
    with_tls = ClientConfig(bootstrap=bootstrap, security=SecuritySettings(tls=TlsSettings()))
    assert await mechanism.offered_mechanism(with_tls) == "PLAIN"
    assert await mechanism.offered_mechanism(ClientConfig(bootstrap="127.0.0.1:1,localhost:2,[::1]:3")) == "PLAIN"
    monkeypatch.setattr(Cluster, "offered", ("PLAIN", "SCRAM-SHA-256"))
    assert await mechanism.offered_mechanism(ClientConfig(bootstrap=bootstrap)) == "SCRAM-SHA-256"
