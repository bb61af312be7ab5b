"""Which variables are properties, which are not, and which are a slip."""

from __future__ import annotations

import pytest

from barnabas.config import BROKER_PROPERTIES, ConfigError, environment, load
from barnabas.config.document import EXAMPLES
from barnabas.config.tables import unserved


def test_every_property_has_a_variable_of_its_own() -> None:
    names = [*BROKER_PROPERTIES, *unserved.UNSERVED_PROPERTIES]

    assert len({environment.variable_of(name) for name in names}) == len(names)
    reserved = {each for each in map(environment.variable_of, names) if environment.is_reserved(each)}
    assert reserved <= environment.CLIENT_ONLY


def test_a_broker_ignores_the_properties_of_clients() -> None:
    config = load(environ=dict.fromkeys(environment.CLIENT_ONLY, "x"))

    assert config.warnings == ()
    assert config.unserved == {}
    assert not config.is_set("sasl.jaas.config")


@pytest.mark.parametrize("name", [each for each in BROKER_PROPERTIES if each != "sasl.jaas.config"])
def test_every_property_is_read_from_its_variable(name: str) -> None:
    default = BROKER_PROPERTIES[name].show(BROKER_PROPERTIES[name].default)
    if default is None:
        default = EXAMPLES.get(name, "3600000")

    config = load(environ={environment.variable_of(name): default})

    assert config.value(name).origin == f"the environment ({environment.variable_of(name)})"


@pytest.mark.parametrize(
    "variable",
    ["BARNABAS_BOOTSTRAP", "BARNABAS_CONFIG", "BARNABAS_LOG_LEVEL", "BARNABAS_KERNEL", "BARNABAS_TEST_FAULT"],
)
def test_reserved_variables_are_not_properties(variable: str) -> None:
    assert load(environ={variable: ""}).warnings == ()


@pytest.mark.parametrize(
    "variable",
    [
        "BARNABAS_SERVICE_HOST",
        "BARNABAS_SERVICE_PORT",
        "BARNABAS_SERVICE_PORT_METRICS",
        "BARNABAS_PORT",
        "BARNABAS_PORT_9092_TCP",
        "BARNABAS_PORT_9092_TCP_PROTO",
        "BARNABAS_PORT_9092_TCP_PORT",
        "BARNABAS_PORT_9092_TCP_ADDR",
        "BARNABAS_METRICS_SERVICE_HOST",
        "BARNABAS_METRICS_PORT_9404_TCP_ADDR",
    ],
)
def test_variables_that_kubernetes_sets_for_a_service_named_barnabas_are_ignored(variable: str) -> None:
    config = load(environ={variable: "tcp://10.0.0.1:9092"})

    assert config.warnings == ()
    assert config.unserved == {}


@pytest.mark.parametrize("variable", ["BARNABAS_PORTS", "BARNABAS_PORT_9092", "BARNABAS_SERVICE", "BARNABAS_"])
def test_a_variable_that_only_resembles_a_service_link_is_refused(variable: str) -> None:
    with pytest.raises(ConfigError):
        load(environ={variable: "1"})


def test_variables_without_the_prefix_are_ignored() -> None:
    assert load(environ={"PATH": "/bin", "KAFKA_LOG_DIRS": "/kafka", "barnabas_log_dirs": "x"}).warnings == ()


@pytest.mark.parametrize(
    ("variable", "sentence"),
    [
        (
            "BARNABAS_LOG_RETENTON_MS",
            "BARNABAS_LOG_RETENTON_MS in the environment: no such property; "
            "did you mean BARNABAS_LOG_RETENTION_MS (log.retention.ms)?",
        ),
        (
            "BARNABAS_log_dirs",
            "BARNABAS_log_dirs in the environment: no such property; did you mean BARNABAS_LOG_DIRS (log.dirs)?",
        ),
        (
            "BARNABAS_BOOTSTRAPS",
            "BARNABAS_BOOTSTRAPS in the environment: no such property; did you mean BARNABAS_BOOTSTRAP?",
        ),
    ],
)
def test_a_misspelled_variable_is_refused_with_the_nearest_one(variable: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(environ={variable: "1"})

    assert str(caught.value) == sentence
