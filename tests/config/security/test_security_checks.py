"""Combinations of security settings that are refused, and those that protect less than they seem."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.config import BrokerConfig, ConfigError, load
from barnabas.config.security.security_checks import super_users
from barnabas.config.tables.sasl_properties import OAUTH_CALLBACK_HANDLER
from tests.config.conftest import WriteFile

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
OAUTH = (
    "listener.name.a.sasl.enabled.mechanisms=OAUTHBEARER",
    f"listener.name.a.oauthbearer.sasl.server.callback.handler.class={OAUTH_CALLBACK_HANDLER}",
    "listener.name.a.oauthbearer.sasl.oauthbearer.jwks.endpoint.url=file:///keys.json",
)


def sasl(*settings: str, host: str = "127.0.0.1", protocol: str = "SASL_SSL") -> BrokerConfig:
    return load(overrides=[f"listeners=A://{host}:0", f"listener.security.protocol.map=A:{protocol}", *settings])


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            (),
            "sasl.enabled.mechanisms=GSSAPI (default): A://127.0.0.1:0 requires SASL with GSSAPI (Kerberos), which "
            "Barnabas does not serve; set listener.name.a.sasl.enabled.mechanisms to some of "
            "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER",
        ),
        (
            ("sasl.enabled.mechanisms=",),
            "sasl.enabled.mechanisms= in --set: A://127.0.0.1:0 requires SASL and has no mechanism; Barnabas serves "
            "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER",
        ),
        (
            ("listener.name.a.sasl.enabled.mechanisms=SCRAM-SHA-512,NTLM",),
            "listener.name.a.sasl.enabled.mechanisms=SCRAM-SHA-512,NTLM in --set: A://127.0.0.1:0 requires SASL with "
            "NTLM, which Barnabas does not serve; set listener.name.a.sasl.enabled.mechanisms to some of "
            "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER",
        ),
        (
            ("sasl.enabled.mechanisms=PLAIN", f'sasl.jaas.config={PLAIN} required user_x="swordfish";'),
            "A://127.0.0.1:0 serves PLAIN and has no users; set listener.name.a.plain.sasl.jaas.config="
            f'{PLAIN} required user_<name>="<password>";',
        ),
        (
            (
                "sasl.enabled.mechanisms=PLAIN",
                f'listener.name.a.plain.sasl.jaas.config={PLAIN} required user_x="swordfish"',
            ),
            "listener.name.a.plain.sasl.jaas.config in --set: it does not end with a semicolon",
        ),
        (
            ("sasl.enabled.mechanisms=PLAIN", f"listener.name.a.plain.sasl.jaas.config={SCRAM} required;"),
            f"listener.name.a.plain.sasl.jaas.config: the login module of PLAIN is {PLAIN}",
        ),
        (
            (
                "sasl.enabled.mechanisms=SCRAM-SHA-256",
                f"listener.name.a.scram-sha-256.sasl.server.callback.handler.class={OAUTH_CALLBACK_HANDLER}",
            ),
            "listener.name.a.scram-sha-256.sasl.server.callback.handler.class="
            f"{OAUTH_CALLBACK_HANDLER} in --set: it validates OAUTHBEARER tokens, not SCRAM-SHA-256",
        ),
        (
            OAUTH[:1],
            "A://127.0.0.1:0 serves OAUTHBEARER, and "
            "listener.name.a.oauthbearer.sasl.server.callback.handler.class is not set; set it to "
            f"{OAUTH_CALLBACK_HANDLER}, because Kafka's default accepts unsigned tokens",
        ),
        (
            OAUTH[:2],
            "A://127.0.0.1:0 serves OAUTHBEARER, and "
            "listener.name.a.oauthbearer.sasl.oauthbearer.jwks.endpoint.url is not set: no token could be verified",
        ),
        (
            (*OAUTH[:2], "sasl.oauthbearer.jwks.endpoint.url=http://login.example.com/keys"),
            "sasl.oauthbearer.jwks.endpoint.url=http://login.example.com/keys in --set: it must be an https: or a "
            "file: URL",
        ),
    ],
)
def test_a_sasl_listener_that_cannot_work_is_refused(settings: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        sasl(*settings)

    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            ["authorizer.class.name=com.example.Mine"],
            "authorizer.class.name=com.example.Mine in --set: Java classes are not loaded; Barnabas serves "
            f"{AUTHORIZER}",
        ),
        (
            ["principal.builder.class=com.example.Mine"],
            "principal.builder.class=com.example.Mine in --set: Java classes are not loaded; Barnabas serves "
            "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        ),
        (
            ["client.quota.callback.class=com.example.Mine"],
            "client.quota.callback.class in --set: Java classes are not loaded; remove it",
        ),
        (
            ["listener.name.plaintext.ssl.engine.factory.class=com.example.Mine"],
            "listener.name.plaintext.ssl.engine.factory.class in --set: Java classes are not loaded; remove it",
        ),
        (["super.users=User:a;bob"], "super.users=User:a;bob in --set: bob is not of the form User:name"),
        (
            ["ignore.security=true", f"authorizer.class.name={AUTHORIZER}"],
            f"ignore.security=true in --set and authorizer.class.name={AUTHORIZER} in --set contradict each other",
        ),
    ],
)
def test_classes_of_users_and_contradictions_are_refused(settings: list[str], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(overrides=settings)

    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("host", "protocol", "words"),
    [
        ("127.0.0.1", "PLAINTEXT", None),
        ("localhost", "PLAINTEXT", None),
        ("[::1]", "PLAINTEXT", None),
        ("", "PLAINTEXT", "without encryption and without authentication (PLAINTEXT)"),
        ("10.0.0.5", "PLAINTEXT", "A://10.0.0.5:0 is open to the network without encryption and without"),
        ("10.0.0.5", "SASL_PLAINTEXT", "without encryption (SASL_PLAINTEXT): records, and the passwords"),
        ("10.0.0.5", "SSL", None),
        ("10.0.0.5", "SASL_SSL", None),
    ],
)
def test_clear_text_on_the_network_is_warned_about(host: str, protocol: str, words: str | None) -> None:
    config = sasl("sasl.enabled.mechanisms=SCRAM-SHA-256", "advertised.listeners=A://b:1", host=host, protocol=protocol)

    found = [each for each in config.warnings if "open to the network" in each]
    assert bool(found) == (words is not None)
    assert words is None or words in found[0]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            ("sasl.enabled.mechanisms=SCRAM-SHA-256", f"sasl.jaas.config={SCRAM} required;"),
            "sasl.jaas.config in --set has no effect: a broker reads it with the prefix of a listener and a mechanism, "
            "as listener.name.<listener>.<mechanism>.sasl.jaas.config",
        ),
        (
            ("sasl.enabled.mechanisms=SCRAM-SHA-256", f"listener.name.a.sasl.jaas.config={SCRAM} required;"),
            "listener.name.a.sasl.jaas.config in --set has no effect: the name lacks the mechanism before "
            "sasl.jaas.config",
        ),
        (
            ("sasl.enabled.mechanisms=SCRAM-SHA-256", "listener.name.b.connections.max.reauth.ms=5"),
            "listener.name.b.connections.max.reauth.ms in --set has no effect: no listener has this prefix "
            "(A, METRICS)",
        ),
        (
            ("sasl.enabled.mechanisms=SCRAM-SHA-256", "listener.name.a.scam-sha-256.connections.max.reauth.ms=5"),
            "listener.name.a.scam-sha-256.connections.max.reauth.ms in --set has no effect: scam-sha-256 is not a "
            "mechanism that reads connections.max.reauth.ms",
        ),
        (
            ("sasl.enabled.mechanisms=SCRAM-SHA-256", "ssl.client.auth=required"),
            "ssl.client.auth=required in --set does not apply to A://127.0.0.1:0 (SASL_SSL); set "
            "listener.name.a.ssl.client.auth for it",
        ),
        (
            ("sasl.enabled.mechanisms=SCRAM-SHA-256", "super.users=User:a"),
            "super.users=User:a in --set has no effect: authorizer.class.name is not set",
        ),
        (OAUTH, "sasl.oauthbearer.expected.issuer is not set for A://127.0.0.1:0: tokens of any issuer are accepted"),
        (
            (*OAUTH, "sasl.oauthbearer.expected.issuer=x"),
            "sasl.oauthbearer.expected.audience is not set for A://127.0.0.1:0: tokens that were issued for other "
            "applications are accepted",
        ),
    ],
)
def test_settings_without_the_expected_effect_are_warned_about(settings: tuple[str, ...], sentence: str) -> None:
    assert sentence in sasl(*settings).warnings


def test_a_complete_configuration_has_no_warning() -> None:
    config = sasl(
        "sasl.enabled.mechanisms=SCRAM-SHA-256,PLAIN,OAUTHBEARER",
        f'listener.name.a.plain.sasl.jaas.config={PLAIN} required user_x="y";',
        f"listener.name.a.scram-sha-256.sasl.jaas.config={SCRAM} required;",
        *OAUTH[1:],
        "sasl.oauthbearer.expected.issuer=x",
        "listener.name.a.oauthbearer.sasl.oauthbearer.expected.audience=y",
        f"authorizer.class.name={AUTHORIZER}",
        "super.users=User:a;User:CN=b,O=c;",
    )

    assert config.warnings == ()


def test_an_open_listener_beside_an_authenticating_one_is_warned_about_unless_acls_decide() -> None:
    both = [
        "listeners=A://127.0.0.1:0,B://127.0.0.1:0",
        "listener.security.protocol.map=A:SASL_SSL,B:PLAINTEXT",
        "sasl.enabled.mechanisms=SCRAM-SHA-256",
    ]

    assert load(overrides=both).warnings == (
        "B://127.0.0.1:0 (PLAINTEXT) accepts clients without authentication, and authorizer.class.name is not set: "
        "they may do everything, whatever the other listeners require",
    )
    assert load(overrides=[*both, f"authorizer.class.name={AUTHORIZER}"]).warnings == ()


def test_private_files_that_everyone_can_read_are_warned_about(tmp_path: Path, write_file: WriteFile) -> None:
    keys = tmp_path / "broker.pem"
    keys.write_text("")
    settings = ("listeners=SSL://127.0.0.1:0", f"ssl.keystore.location={keys}", "ssl.key.password=swordfish")
    path = write_file(*settings)
    for each in (keys, path):
        each.chmod(0o604)

    assert load(config_file=path).warnings == (
        "server.properties has passwords or keys (ssl.key.password) and can be read by every user of this machine",
        f"ssl.keystore.location={keys} in server.properties line 2 can be read by every user of this machine; "
        f"run chmod o-r {keys}",
    )
    for each in (keys, path):
        each.chmod(0o640)
    assert load(config_file=path).warnings == ()


def test_a_dynamic_key_store_needs_the_prefix_of_a_listener() -> None:
    config = load(overrides=["listeners=SSL://127.0.0.1:0"])

    with pytest.raises(ConfigError) as caught:
        config.with_dynamic({}, {"ssl.keystore.location": "new.pem"})
    assert str(caught.value) == (
        "ssl.keystore.location in the dynamic config of this broker: while the broker runs it can be set for one "
        "listener only, as listener.name.<listener>.ssl.keystore.location"
    )
    changed = config.with_dynamic({}, {"listener.name.ssl.ssl.keystore.location": "new.pem"})
    assert changed.listener_properties("SSL").get_str("ssl.keystore.location") == "new.pem"


def test_a_super_user_is_only_who_is_written_there() -> None:
    assert super_users(" User:a ;\tUser:b\n;; User:\u00a0c\u00a0") == ("User:a", "User:b", "User:\u00a0c\u00a0")
