"""The properties of a listener: prefixes, their precedence, and names that no listener can have."""

from __future__ import annotations

import pytest

from barnabas.config import BrokerConfig, ConfigError, load
from barnabas.config.security.listener_properties import ListenerProperties
from barnabas.config.security.secret import HIDDEN, Secret

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="swordfish";'


def secure(*settings: str) -> BrokerConfig:
    return load(
        overrides=[
            "listeners=PLAINTEXT://127.0.0.1:0,IN.SIDE://127.0.0.1:0,OUT://127.0.0.1:0",
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,IN.SIDE:SASL_SSL,OUT:SSL",
            "listener.name.in.side.sasl.enabled.mechanisms=SCRAM-SHA-512",
            *settings,
        ]
    )


def test_each_listener_has_its_protocol() -> None:
    config = secure("metrics.listener=SSL://127.0.0.1:0")

    assert [config.security_protocol(each.name) for each in config.listeners] == ["PLAINTEXT", "SASL_SSL", "SSL"]
    assert config.security_protocol("METRICS") == "SSL"
    with pytest.raises(KeyError):
        config.security_protocol("CONTROLLER")


def test_the_longest_prefix_wins_and_other_listeners_are_not_concerned() -> None:
    config = secure(
        "connections.max.reauth.ms=1",
        "listener.name.in.side.connections.max.reauth.ms=2",
        "listener.name.in.side.scram-sha-512.connections.max.reauth.ms=3",
    )
    inside, outside = config.listener_properties("IN.SIDE"), config.listener_properties("OUT")

    assert inside.get_int("connections.max.reauth.ms", mechanism="SCRAM-SHA-512") == 3
    assert inside.get_int("connections.max.reauth.ms", mechanism="PLAIN") == 2
    assert inside.get_int("connections.max.reauth.ms") == 2
    assert outside.get_int("connections.max.reauth.ms") == 1
    assert outside.get_list("sasl.enabled.mechanisms") == ("GSSAPI",)


def test_login_modules_count_with_listener_and_mechanism_only() -> None:
    config = secure(f"sasl.jaas.config={JAAS}", f"listener.name.in.side.sasl.jaas.config={JAAS}")
    assert config.listener_properties("IN.SIDE").get_secret("sasl.jaas.config", mechanism="PLAIN") is None

    config = secure(f"listener.name.in.side.plain.sasl.jaas.config={JAAS}")
    assert config.listener_properties("IN.SIDE").get_secret("sasl.jaas.config", mechanism="PLAIN") == Secret(JAAS)


def test_client_certificates_on_sasl_ssl_need_the_prefix() -> None:
    config = secure("ssl.client.auth=required")

    assert config.listener_properties("IN.SIDE").get_str("ssl.client.auth") == "none"
    assert config.listener_properties("OUT").get_str("ssl.client.auth") == "required"
    config = secure("listener.name.in.side.ssl.client.auth=requested")
    assert config.listener_properties("IN.SIDE").get_str("ssl.client.auth") == "requested"


def test_a_listener_view_satisfies_its_protocol_and_refuses_other_types() -> None:
    view: ListenerProperties = secure("ssl.key.password=swordfish").listener_properties("OUT")

    assert (view.listener, view.security_protocol) == ("OUT", "SSL")
    assert view.get_str("ssl.keystore.location") is None
    assert view.get_bool("ssl.allow.dn.changes") is False
    with pytest.raises(TypeError):
        view.get_str("ssl.key.password")
    with pytest.raises(TypeError):
        view.get_int("ssl.keystore.type")


def test_passwords_are_secrets_with_and_without_a_prefix() -> None:
    config = secure("ssl.key.password=swordfish", "listener.name.out.ssl.keystore.password=swordfish")

    for name in ("ssl.key.password", "listener.name.out.ssl.keystore.password"):
        value = config.value(name)
        assert isinstance(value.value, Secret)
        assert value.text is None
        assert str(value.value) == HIDDEN
        assert config.setting(name) == f"{name} in --set"
    assert "swordfish" not in repr(config._static)


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        (
            "listener.name.out.ssl.client.auht=required",
            "listener.name.out.ssl.client.auht in --set: no such property; "
            "did you mean listener.name.out.ssl.client.auth?",
        ),
        (
            "listener.name.out.ssl.client.auth=yes",
            "listener.name.out.ssl.client.auth=yes in --set: must be one of required, requested, none",
        ),
    ],
)
def test_a_typing_error_after_the_prefix_is_refused(setting: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        secure(setting)

    assert str(caught.value) == sentence


def test_variables_of_listeners_are_read() -> None:
    config = load(
        environ={
            "BARNABAS_LISTENERS": "OUT://127.0.0.1:0",
            "BARNABAS_LISTENER_SECURITY_PROTOCOL_MAP": "OUT:SASL_PLAINTEXT",
            "BARNABAS_LISTENER_NAME_OUT_SASL_ENABLED_MECHANISMS": "SCRAM-SHA-512",
            "BARNABAS_LISTENER_NAME_OUT_SCRAM_SHA_512_CONNECTIONS_MAX_REAUTH_MS": "7",
        }
    )
    view = config.listener_properties("OUT")

    assert view.get_list("sasl.enabled.mechanisms") == ("SCRAM-SHA-512",)
    assert view.get_int("connections.max.reauth.ms", mechanism="SCRAM-SHA-512") == 7
