"""OAUTHBEARER through a daemon: a token file, refused tokens, rotated keys, and starts that are refused."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from barnabas import Admin, AdminConfig
from barnabas.clients.errors import AuthenticationError
from barnabas.clients.security.settings import SecuritySettings
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.sasl.oauthbearer import OAuthBearerClient
from tests.support.daemon import Daemon, DaemonError, start_daemon
from tests.support.kafka.sasl_wire import SaslWire

PREFIX = "listener.name.sasl_plaintext.oauthbearer."
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
FIRST, SECOND = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))


def write_keys(path: Path, **keys: Any) -> str:
    algorithm = jwt.algorithms.ECAlgorithm
    listed = [{**json.loads(algorithm.to_jwk(key.public_key())), "kid": kid} for kid, key in keys.items()]
    path.write_text(json.dumps({"keys": listed}))
    return path.as_uri()


def token(key: Any = FIRST, kid: str = "first", **claims: Any) -> str:
    now = int(time.time())
    given = {"sub": "alice", "iss": "https://idp", "aud": "kafka", "iat": now, "exp": now + 600, **claims}
    return jwt.encode(given, key, "ES256", headers={"kid": kid})


def settings(url: str | None) -> list[str]:
    return [
        "listeners=SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms=OAUTHBEARER",
        f"{PREFIX}sasl.server.callback.handler.class={HANDLER}",
        *([] if url is None else [f"{PREFIX}sasl.oauthbearer.jwks.endpoint.url={url}"]),
        f"{PREFIX}sasl.oauthbearer.expected.issuer=https://idp",
        "connection.failed.authentication.delay.ms=0",
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users=User:alice",
    ]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("provider") / "keys.json"
    write_keys(path, first=FIRST)
    return path


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Iterator[Daemon]:
    with start_daemon(tmp_path_factory.mktemp("broker"), *settings(keys.as_uri())) as running:
        yield running


def login(daemon: Daemon, text: str) -> Any:
    with SaslWire(daemon.host, daemon.port) as wire:
        return wire.login("OAUTHBEARER", OAuthBearerClient(text))


def client(path: Path) -> SecuritySettings:
    return SecuritySettings.from_properties(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": path.as_uri(),
        }
    )


async def test_our_client_logs_in_with_a_token_file(daemon: Daemon, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(f"{token()}\n")
    async with Admin(AdminConfig(bootstrap=daemon.bootstrap, security=client(path))) as admin:
        await admin.create_topic("made-by-alice")  # as the super user
    path.write_text(token(exp=1))
    with pytest.raises(AuthenticationError, match="OAUTHBEARER login"):
        async with Admin(AdminConfig(bootstrap=daemon.bootstrap, security=client(path))) as admin:
            await admin.list_topics()
    with pytest.raises(AuthenticationError, match="the OAuth token cannot be read from"):
        async with Admin(AdminConfig(bootstrap=daemon.bootstrap, security=client(tmp_path / "none"))) as admin:
            await admin.list_topics()


def test_a_session_ends_with_its_token(daemon: Daemon) -> None:
    answer = login(daemon, token())
    assert answer.error_code == 0
    assert 500 < answer.session_lifetime.total_seconds() <= 600


@pytest.mark.parametrize("refused", [token(SECOND), token(kid="unknown"), token(exp=1), token(iss="x"), "a.b.c"])
def test_a_refused_token_gets_the_answer_of_kafka(daemon: Daemon, refused: str) -> None:
    answer = login(daemon, refused)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == '{"status":"invalid_token"}'
    assert refused not in daemon.log


def test_keys_are_rotated_while_the_broker_runs(daemon: Daemon, keys: Path) -> None:
    assert login(daemon, token(SECOND, "second")).error_code != 0
    write_keys(keys, first=FIRST, second=SECOND)
    assert login(daemon, token(SECOND, "second")).error_code == 0


@pytest.mark.parametrize(
    ("url", "message"),
    [(None, "sasl.oauthbearer.jwks.endpoint.url"), ("http://idp/keys", "jwks.endpoint.url=http://idp/keys")],
)
def test_a_start_without_signed_keys_is_refused(tmp_path: Path, url: str | None, message: str) -> None:
    with pytest.raises(DaemonError) as caught, start_daemon(tmp_path, *settings(url)):
        pass
    assert message in str(caught.value)


def test_a_start_warns_about_tokens_for_other_services(daemon: Daemon) -> None:
    assert "accepts tokens that the identity provider issued for other services" in daemon.log
    assert "sasl.oauthbearer.expected.audience not set" in daemon.log
