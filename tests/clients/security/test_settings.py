"""Kafka's client properties as SecuritySettings: what is refused, and that no password is shown."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from barnabas import ProducerConfig
from barnabas.clients.errors import ClientConfigError
from barnabas.clients.security.settings import OAuthClient, Password, SecuritySettings
from barnabas.config.security.secret import Secret

SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="canary";'
PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="canary";'
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
ENDPOINT = "sasl.oauthbearer.token.endpoint.url"


def read(**properties: str) -> SecuritySettings:
    return SecuritySettings.from_properties({name.replace("_", "."): value for name, value in properties.items()})


def test_nothing_is_plaintext() -> None:
    assert SecuritySettings.from_properties({"bootstrap.servers": "a:1", "acks": "all"}) == SecuritySettings()
    assert SecuritySettings().protocol == "PLAINTEXT"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("ssl.trustore.location", "ssl.truststore.location"),
        ("sasl.jaas.conf", "sasl.jaas.config"),
        ("security.protcol", "security.protocol"),
        ("sasl.mechanisms", "sasl.mechanism"),
        ("SSL.truststore.type", "ssl.truststore.type"),
    ],
)
def test_misspelled_names_are_refused(name: str, meant: str) -> None:
    with pytest.raises(ClientConfigError) as refused:
        SecuritySettings.from_properties({name: "canary"})
    assert str(refused.value) == f"{name}: clients have no such property; did you mean {meant}?"


@pytest.mark.parametrize(
    "name",
    [
        "sasl.kerberos.service.name",
        "sasl.login.class",
        "sasl.client.callback.handler.class",
        "sasl.oauthbearer.header.urlencode",
        "ssl.provider",
        "ssl.engine.factory.class",
        "security.providers",
        "sasl.enabled.mechanisms",
    ],
)
def test_names_that_only_kafka_uses_are_ignored(name: str) -> None:
    assert SecuritySettings.from_properties({name: "x"}) == SecuritySettings()


def test_each_protocol_and_mechanism() -> None:
    scram = read(security_protocol="sasl_plaintext", sasl_mechanism="SCRAM-SHA-512", sasl_jaas_config=SCRAM)
    assert (scram.protocol, scram.login) == ("SASL_PLAINTEXT", Password("alice", Secret("canary")))
    plain = read(
        security_protocol="SASL_SSL",
        sasl_mechanism="PLAIN",
        sasl_username="bob",
        sasl_password="canary",
        ssl_truststore_type="PEM",
        ssl_truststore_location="/ca.pem",
    )
    assert (plain.protocol, plain.login) == ("SASL_SSL", Password("bob", Secret("canary")))
    assert plain.tls is not None
    assert plain.tls.files == (Path("/ca.pem"),)
    token = read(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-256",
        sasl_jaas_config=SCRAM.replace(";", ' tokenauth="true";'),
    )
    assert token.login == Password("alice", Secret("canary"), is_token=True)
    assert read(security_protocol="SSL").protocol == "SSL"


def test_oauth_from_options_or_properties() -> None:
    settings = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", ENDPOINT: "https://idp/token"}
    options = f'{OAUTH} clientId="edge" clientSecret="canary" scope="kafka";'
    found = SecuritySettings.from_properties({**settings, "sasl.jaas.config": options})
    assert found.login == OAuthClient("https://idp/token", "edge", Secret("canary"), "kafka")
    newer = {
        "sasl.oauthbearer.client.credentials.client.id": "e",
        "sasl.oauthbearer.client.credentials.client.secret": "s",
    }
    found = SecuritySettings.from_properties({**settings, **newer})
    assert found.login == OAuthClient("https://idp/token", "e", Secret("s"))
    found = SecuritySettings.from_properties({**settings, ENDPOINT: "file:///run/token"})
    assert found.login == OAuthClient("file:///run/token")


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"security_protocol": "TLS"}, "security.protocol=TLS is not one of PLAINTEXT, SSL"),
        ({"security_protocol": "SASL_SSL"}, r"sasl.mechanism=GSSAPI \(Kafka's default\) is not supported"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"}, "needs a user: set sasl.jaas.config"),
        (
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_jaas_config": SCRAM},
            "sasl.mechanism=PLAIN needs org.apache.kafka.common.security.plain.PlainLoginModule",
        ),
        (
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_jaas_config": PLAIN[:-2]},
            "sasl.jaas.config: ",
        ),
        (
            {
                "security_protocol": "SASL_SSL",
                "sasl_mechanism": "PLAIN",
                "sasl_jaas_config": PLAIN.replace(";", " tokenauth=true;"),
            },
            "needs a SCRAM mechanism",
        ),
        ({"security_protocol": "SSL", "ssl_keystore_type": "PEM", "ssl_keystore_key": "canary"}, "certificate.chain"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}, ENDPOINT),
        (
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER", ENDPOINT: "http://idp"},
            "neither an https: nor a file: URL",
        ),
        (
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER", ENDPOINT: "https://idp"},
            "client.credentials.client.id",
        ),
    ],
)
def test_faults_name_the_property_and_show_no_secret(properties: dict[str, str], message: str) -> None:
    with pytest.raises(ClientConfigError, match=message) as caught:
        read(**properties)
    assert "canary" not in str(caught.value)


def test_settings_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    continued = PLAIN.replace(" username", " \\\n  username")
    path.write_text(
        f"bootstrap.servers=b:1\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={continued}\n"
    )
    settings = SecuritySettings.from_file(path)
    assert (settings.protocol, settings.login) == ("SASL_PLAINTEXT", Password("alice", Secret("canary")))
    path.write_text("security.protocol=PLAINTEXT\nsasl.mechanism=\\uZZZZ\n")
    with pytest.raises(ClientConfigError, match=r"client\.properties, line 2: "):
        SecuritySettings.from_file(path)


def test_settings_travel_to_workers_and_show_no_secret() -> None:
    settings = read(security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN", sasl_jaas_config=PLAIN)
    config = ProducerConfig(security=settings)
    assert pickle.loads(pickle.dumps(config)) == config
    assert "canary" not in repr(config)


def test_a_config_takes_settings_only() -> None:
    anything: Any = {"security.protocol": "SSL"}
    with pytest.raises(ClientConfigError, match="security must be SecuritySettings, not dict"):
        ProducerConfig(security=anything)


def test_a_password_comes_from_a_config_provider(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text('password=pen"cil\n')
    path = tmp_path / "client.properties"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="alice" password="${{file:{secrets}:password}}";\n'
        "config.providers=file\n"
        "config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider\n"
    )
    login = SecuritySettings.from_file(path).login
    assert isinstance(login, Password)
    assert login.password.reveal() == 'pen"cil'
    secrets.write_text("other=1\n")
    with pytest.raises(ClientConfigError, match=r"sasl\.jaas\.config in .*client\.properties: .* has no value"):
        SecuritySettings.from_file(path)
