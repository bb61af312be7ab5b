"""Addresses: what is understood, what is opened, what clients are told, and what is refused in which words."""

from __future__ import annotations

import pytest

from barnabas.config import BrokerConfig, ConfigError, Listener, load
from barnabas.config.listeners import BadListenerError, parse_listener


def loaded(**settings: str) -> BrokerConfig:
    """`listeners` and the like with underscores for dots."""
    return load(overrides=[f"{name.replace('_', '.')}={text}" for name, text in settings.items()])


@pytest.mark.parametrize(
    ("text", "listener"),
    [
        ("127.0.0.1:9092", Listener("PLAINTEXT", "127.0.0.1", 9092)),
        ("localhost:0", Listener("PLAINTEXT", "localhost", 0)),
        (":9092", Listener("PLAINTEXT", "", 9092)),
        ("PLAINTEXT://:9092", Listener("PLAINTEXT", "", 9092)),
        ("inside://broker-1.example.com:65535", Listener("INSIDE", "broker-1.example.com", 65535)),
        ("[::1]:9092", Listener("PLAINTEXT", "::1", 9092)),
        ("CLIENT_V6://[fe80::1%eth0]:9092", Listener("CLIENT_V6", "fe80::1%eth0", 9092)),
        ("0.0.0.0:9092", Listener("PLAINTEXT", "0.0.0.0", 9092)),
    ],
)
def test_an_address_is_parsed(text: str, listener: Listener) -> None:
    assert parse_listener(text) == listener


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("localhost", "localhost has no port (host:port or NAME://host:port)"),
        ("://localhost:9092", "://localhost:9092 has no name before ://"),
        ("::1:9092", "::1:9092: an IPv6 address is written in brackets, as in [::1]:9092"),
        ("[::1:9092", "[::1:9092: an IPv6 address is written in brackets, as in [::1]:9092"),
        ("[localhost]:9092", "[localhost]:9092: only an IPv6 address is written in brackets"),
        ("localhost:http", "localhost:http: the port is not a number from 0 to 65535"),
        ("localhost:65536", "localhost:65536: the port is not a number from 0 to 65535"),
        ("localhost:-1", "localhost:-1: the port is not a number from 0 to 65535"),
        ("localhost:" + "9" * 5000, "localhost:" + "9" * 5000 + ": the port is not a number from 0 to 65535"),
        ("local host:1", "local host:1: local host is not a host name or an address"),
        ("*:9092", "*:9092: * is not a host name or an address"),
        ("http://a/b:1", "http://a/b:1: a/b is not a host name or an address"),
        ("A B://localhost:1", "A B://localhost:1: A B is not a listener name"),
    ],
)
def test_an_illegal_address_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(BadListenerError) as caught:
        parse_listener(text)

    assert str(caught.value) == reason


@pytest.mark.parametrize("text", ["PLAINTEXT://[::1]:9092", "INSIDE://localhost:0", "PLAINTEXT://:9092"])
def test_a_listener_is_formatted_as_it_is_parsed(text: str) -> None:
    assert str(parse_listener(text)) == text


@pytest.mark.parametrize("host", ["", "0.0.0.0", "[::]", "[0:0:0:0:0:0:0:0]", "[0::0]"])
def test_every_spelling_of_all_interfaces_is_recognized(host: str) -> None:
    assert parse_listener(f"{host}:9092").is_every_interface


def test_the_default_is_the_loopback_address_only() -> None:
    config = loaded()

    assert config.listeners == (Listener("PLAINTEXT", "127.0.0.1", 9092),)
    assert config.advertised_listeners == {"PLAINTEXT": Listener("PLAINTEXT", "127.0.0.1", 9092)}
    assert config.metrics_listener == Listener("PLAINTEXT", "127.0.0.1", 9404)


def test_several_listeners_with_names_that_are_mapped_to_plaintext_are_opened() -> None:
    config = loaded(
        listeners="INSIDE://10.0.0.5:29092,outside://0.0.0.0:9092",
        listener_security_protocol_map="INSIDE:PLAINTEXT, Outside:plaintext",
        advertised_listeners="OUTSIDE://broker.example.com:19092",
    )

    assert config.listeners == (Listener("INSIDE", "10.0.0.5", 29092), Listener("OUTSIDE", "0.0.0.0", 9092))
    assert config.advertised_listeners == {
        "INSIDE": Listener("INSIDE", "10.0.0.5", 29092),
        "OUTSIDE": Listener("OUTSIDE", "broker.example.com", 19092),
    }


def test_a_controllers_listener_is_neither_opened_nor_advertised_whatever_its_protocol() -> None:
    config = loaded(
        listeners="PLAINTEXT://:9092,CONTROLLER://:9093",
        controller_listener_names="CONTROLLER",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,CONTROLLER:SSL",
        advertised_listeners="PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    )

    assert [listener.name for listener in config.listeners] == ["PLAINTEXT"]
    assert config.advertised_listeners == {"PLAINTEXT": Listener("PLAINTEXT", "localhost", 9092)}


@pytest.mark.parametrize("host", ["", "0.0.0.0", "[::]"])
def test_without_an_advertised_address_every_interface_advertises_the_connections_with_a_warning(host: str) -> None:
    config = loaded(listeners=f"{host}:9092")

    assert config.advertised_listeners == {"PLAINTEXT": Listener("PLAINTEXT", "", 9092)}
    assert [each for each in config.warnings if "each client is told the address at which it reached" in each]


def test_an_advertised_address_silences_that_warning() -> None:
    warnings = loaded(listeners=":9092", advertised_listeners="localhost:9092").warnings

    assert not [each for each in warnings if "each client is told" in each]


def test_one_port_may_be_ipv4_and_ipv6() -> None:
    config = loaded(
        listeners="FOUR://127.0.0.1:9092,SIX://[::1]:9092",
        listener_security_protocol_map="FOUR:PLAINTEXT,SIX:PLAINTEXT",
    )

    assert [listener.port for listener in config.listeners] == [9092, 9092]


@pytest.mark.parametrize("hosts", [("127.0.0.1", "127.0.0.2"), ("127.0.0.1", "localhost"), ("a.b.c.d", "[::1]")])
def test_one_port_for_any_other_pair_of_hosts_is_refused_as_in_kafka(hosts: tuple[str, str]) -> None:
    with pytest.raises(ConfigError, match="have the same port"):
        loaded(
            listeners=f"A://{hosts[0]}:9092,B://{hosts[1]}:9092",
            listener_security_protocol_map="A:PLAINTEXT,B:PLAINTEXT",
        )


def test_a_third_listener_on_the_port_of_a_pair_is_refused() -> None:
    with pytest.raises(ConfigError, match="have the same port"):
        loaded(
            listeners="A://127.0.0.1:9092,B://[::1]:9092,C://[::2]:9092",
            listener_security_protocol_map="A:PLAINTEXT,B:PLAINTEXT,C:PLAINTEXT",
        )


def test_free_ports_do_not_collide() -> None:
    config = loaded(
        listeners="A://127.0.0.1:0,B://127.0.0.1:0", listener_security_protocol_map="A:PLAINTEXT,B:PLAINTEXT"
    )

    assert len(config.listeners) == 2


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"listeners": "localhost"},
            "listeners=localhost in --set: localhost has no port (host:port or NAME://host:port)",
        ),
        ({"listeners": ""}, "listeners= in --set: must name at least one"),
        (
            {"listeners": "localhost:9092,localhost:9093"},
            "listeners=localhost:9092,localhost:9093 in --set: "
            "PLAINTEXT://localhost:9092 and PLAINTEXT://localhost:9093 have the same name; name them, as in INSIDE://host:port",
        ),
        (
            {
                "listeners": "PLAINTEXT://a:1,B://b:1",
                "listener_security_protocol_map": "B:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            },
            "listeners=PLAINTEXT://a:1,B://b:1 in --set: PLAINTEXT://a:1 and B://b:1 have the same port",
        ),
        (
            {"listeners": "INSIDE://:9092"},
            "listeners=INSIDE://:9092 in --set: INSIDE has no security protocol; "
            "add INSIDE:PLAINTEXT to listener.security.protocol.map, or another protocol",
        ),
        (
            {"listener_security_protocol_map": "A:TLS"},
            "listener.security.protocol.map=A:TLS in --set: TLS is not a security protocol "
            "(Kafka has PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)",
        ),
        (
            {"listener_security_protocol_map": "A:PLAINTEXT,a:SSL"},
            "listener.security.protocol.map=A:PLAINTEXT,a:SSL in --set: A is mapped twice",
        ),
        (
            {"listener_security_protocol_map": "PLAINTEXT"},
            "listener.security.protocol.map=PLAINTEXT in --set: PLAINTEXT is not NAME:PROTOCOL",
        ),
        (
            {"listeners": "PLAINTEXT://:1", "controller_listener_names": "PLAINTEXT"},
            "listeners=PLAINTEXT://:1 in --set: none is left for clients; "
            "see controller.listener.names=PLAINTEXT in --set",
        ),
        (
            {"advertised_listeners": "0.0.0.0:9092"},
            "advertised.listeners=0.0.0.0:9092 in --set: PLAINTEXT://0.0.0.0:9092: no client can connect to 0.0.0.0; "
            "write a host name or an address",
        ),
        (
            {"advertised_listeners": "OUTSIDE://a:1"},
            "advertised.listeners=OUTSIDE://a:1 in --set: OUTSIDE is not a name in listeners (PLAINTEXT)",
        ),
        (
            {"metrics_listener": "SASL_SSL://localhost:9404"},
            "metrics.listener=SASL_SSL://localhost:9404 in --set: SASL_SSL is neither PLAINTEXT nor SSL, the protocols "
            "of metrics",
        ),
        (
            {"console_listener": "localhost"},
            "console.listener=localhost in --set: localhost has no port (host:port or NAME://host:port)",
        ),
        (
            {"console_listener": "SSL://localhost:8080"},
            "console.listener=SSL://localhost:8080 in --set: SSL://localhost:8080 has a name, and the console's "
            "address is host:port",
        ),
        (
            {"console_listener": ":8080"},
            "console.listener=:8080 in --set: :8080 has no host; 0.0.0.0 is every interface",
        ),
        (
            {"metrics_listener": "localhost"},
            "metrics.listener=localhost in --set: localhost has no port (host:port or NAME://host:port)",
        ),
        (
            {"metrics_listener": "127.0.0.1:9092"},
            "metrics.listener=127.0.0.1:9092 in --set: PLAINTEXT://127.0.0.1:9092 and PLAINTEXT://127.0.0.1:9092 "
            "have the same port",
        ),
    ],
)
def test_an_impossible_listener_is_refused_with_name_and_origin(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(**settings)

    assert str(caught.value) == sentence


def test_metrics_take_a_free_port_when_a_client_listener_does() -> None:
    assert loaded(listeners="127.0.0.1:0").metrics_listener == Listener("PLAINTEXT", "127.0.0.1", 0)


def test_a_configured_metrics_port_is_kept() -> None:
    config = loaded(listeners="127.0.0.1:0", metrics_listener="0.0.0.0:9404")

    assert config.metrics_listener == Listener("PLAINTEXT", "0.0.0.0", 9404)


def test_an_empty_metrics_listener_is_none() -> None:
    assert loaded(metrics_listener="").metrics_listener is None
