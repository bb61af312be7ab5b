"""File, environment and --set: which wins, what is refused in which words, what is only warned about."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.config import BrokerConfig, ConfigError, ConfigSource, load
from tests.config.conftest import WriteFile


def refusal(**arguments: object) -> str:
    with pytest.raises(ConfigError) as caught:
        load(**arguments)  # type: ignore[arg-type]
    return str(caught.value)


# Precedence


def test_the_default_loses_to_the_file_the_file_to_the_environment_and_that_to_set(write_file: WriteFile) -> None:
    path = write_file("num.partitions=2", "log.segment.bytes=2048", "max.connections=2")
    environ = {"BARNABAS_LOG_SEGMENT_BYTES": "4096", "BARNABAS_MAX_CONNECTIONS": "3"}

    config = load(config_file=path, environ=environ, overrides=["max.connections=4"])

    assert config.get_int("background.threads") == 10
    assert config.get_int("num.partitions") == 2
    assert config.get_int("log.segment.bytes") == 4096
    assert config.get_int("max.connections") == 4


def test_every_value_has_its_layer_and_origin(write_file: WriteFile) -> None:
    path = write_file("# a comment", "num.partitions = 2 ")
    config = load(config_file=path, environ={"BARNABAS_LOG_DIRS": "a,b"}, overrides=["max.connections=4"])

    described = {
        name: (config.value(name).text, config.value(name).source, config.value(name).origin)
        for name in ("num.partitions", "log.dirs", "max.connections", "background.threads")
    }

    static = ConfigSource.STATIC_BROKER_CONFIG
    assert described == {
        "num.partitions": ("2", static, "server.properties line 2"),
        "log.dirs": ("a,b", static, "the environment (BARNABAS_LOG_DIRS)"),
        "max.connections": ("4", static, "--set"),
        "background.threads": ("10", ConfigSource.DEFAULT_CONFIG, "default"),
    }


def test_the_last_of_repeated_settings_wins_within_a_layer(write_file: WriteFile) -> None:
    path = write_file("num.partitions=2", "num.partitions=3")

    config = load(config_file=path)
    assert config.get_int("num.partitions") == 3
    assert config.warnings == ("num.partitions in server.properties line 1 has no effect: line 2 sets it again",)
    assert load(overrides=["num.partitions=4", "num.partitions=5"]).get_int("num.partitions") == 5


def test_without_a_file_the_one_in_the_environment_is_read(write_file: WriteFile) -> None:
    path = write_file("num.partitions=7")

    assert load(environ={"BARNABAS_CONFIG": str(path)}).get_int("num.partitions") == 7
    assert load(environ={"BARNABAS_CONFIG": ""}).get_int("num.partitions") == 1


def test_a_value_of_set_may_hold_equals_signs_and_blanks() -> None:
    config = load(overrides=["listeners = A://:1", "listener.security.protocol.map=A:PLAINTEXT"])

    assert str(config.listeners[0]) == "A://:1"


def test_defaults_are_kept_when_nothing_is_set() -> None:
    config = load()

    assert config.warnings == ()
    assert all(value.is_default for _, value in config.describe())


# Refusals


def test_a_bad_value_names_property_file_and_line(write_file: WriteFile) -> None:
    path = write_file("", "", "", "", "", "", "log.segment.bytes=12x")

    assert refusal(config_file=path) == "log.segment.bytes=12x in server.properties line 7: not an int"


def test_a_bad_value_names_its_variable_or_option() -> None:
    assert (
        refusal(environ={"BARNABAS_LOG_SEGMENT_BYTES": "1000"})
        == "log.segment.bytes=1000 in the environment (BARNABAS_LOG_SEGMENT_BYTES): must be at least 1024"
    )
    assert refusal(overrides=["log.preallocate=on"]) == ("log.preallocate=on in --set: not a boolean (true or false)")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("log.segmnt.bytes", "log.segmnt.bytes in --set: no such property; did you mean log.segment.bytes?"),
        ("LOG.DIRS", "LOG.DIRS in --set: no such property; did you mean log.dirs?"),
        ("num.io.thread", "num.io.thread in --set: no such property; did you mean num.io.threads?"),
        ("retention.ms", "retention.ms in --set: a property of topics; the broker's is log.retention.ms"),
        ("segment.bytes", "segment.bytes in --set: a property of topics; the broker's is log.segment.bytes"),
        ("xyzzy", "xyzzy in --set: no such property; `barnabas config list` shows them all"),
    ],
)
def test_an_unknown_name_is_refused_with_its_source_and_the_nearest_name(name: str, sentence: str) -> None:
    assert refusal(overrides=[f"{name}=1"]) == sentence


def test_the_value_of_an_unknown_name_is_not_shown(write_file: WriteFile) -> None:
    path = write_file("my.secret.passwort=swordfish")

    assert "swordfish" not in refusal(config_file=path)


@pytest.mark.parametrize("text", ["num.partitions", "=3", ""])
def test_an_option_that_is_not_an_assignment_is_refused(text: str) -> None:
    assert refusal(overrides=[text]) == f"{text} in --set: not of the form name=value"


def test_a_file_that_cannot_be_read_is_one_sentence(in_tmp: Path) -> None:
    assert refusal(config_file=Path("missing.properties")) == (
        "cannot read the configuration file missing.properties: No such file or directory"
    )
    assert refusal(config_file=Path(".")) == "cannot read the configuration file .: Is a directory"


def test_a_line_that_java_refuses_is_refused_with_its_number(write_file: WriteFile) -> None:
    path = write_file("num.partitions=1", "log.dir=\\u12")

    assert refusal(config_file=path) == r"server.properties line 2: a \u escape needs four hexadecimal digits"


def test_a_value_without_a_name_is_refused(write_file: WriteFile) -> None:
    assert refusal(config_file=write_file("a=b", "=c")) == "server.properties line 2: a value without a name"


def test_a_reference_to_a_config_provider_is_refused_where_it_would_be_taken_literally() -> None:
    assert refusal(overrides=["log.dirs=${env:DATA}"]) == (
        "log.dirs in --set: ${env:DATA} has no config provider env in config.providers; it is not set"
    )


# Kafka's names that are not served


def test_unserved_names_are_kept_and_warned_about_once(write_file: WriteFile) -> None:
    path = write_file("num.network.threads=3", "num.io.threads=8", "zookeeper.connect=localhost:2181")

    config = load(config_file=path)

    assert config.warnings == (
        "properties of Apache Kafka that Barnabas does not serve, without effect: num.network.threads in "
        "server.properties line 1, num.io.threads in server.properties line 2, zookeeper.connect in server.properties "
        "line 3",
    )
    assert {name: value.value for name, value in config.unserved.items()} == {
        "num.network.threads": "3",
        "num.io.threads": "8",
        "zookeeper.connect": "localhost:2181",
    }


def test_unserved_security_properties_have_a_separate_warning_without_values() -> None:
    config = load(
        overrides=[
            "sasl.kerberos.service.name=kafka",
            "zookeeper.ssl.keystore.password=swordfish",
            "num.io.threads=8",
        ]
    )

    assert config.warnings == (
        "security properties that Barnabas does not serve, without effect: sasl.kerberos.service.name in --set, "
        "zookeeper.ssl.keystore.password in --set",
        "properties of Apache Kafka that Barnabas does not serve, without effect: num.io.threads in --set",
    )


def test_an_unserved_name_may_be_set_in_the_environment() -> None:
    config = load(environ={"BARNABAS_NUM_IO_THREADS": "8", "BARNABAS_ZOOKEEPER_CLIENTCNXNSOCKET": "x"})

    assert set(config.unserved) == {"num.io.threads", "zookeeper.clientCnxnSocket"}


@pytest.mark.parametrize(
    "setting", ["security.inter.broker.protocol=PLAINTEXT", "unclean.leader.election.enable=false"]
)
def test_an_unserved_setting_that_holds_anyway_causes_no_warning(setting: str) -> None:
    assert load(overrides=[setting]).warnings == ()


def test_a_plug_ins_own_names_are_kept() -> None:
    config = load(overrides=["rlmm.config.remote.log.metadata.topic.replication.factor=1", "rsm.config.chunk.size=1"])

    assert len(config.unserved) == 2


# A server.properties that somebody has: Kafka 4.3's own config/server.properties, and that of a 3.9 with ZooKeeper

KAFKA_4_3 = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""
KAFKA_3_9_WITH_ZOOKEEPER = """\
broker.id=0
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=kafka-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.check.interval.ms=300000
zookeeper.connect=localhost:2181
zookeeper.connection.timeout.ms=18000
group.initial.rebalance.delay.ms=0
"""


def test_kafkas_own_file_for_kraft_loads_with_two_warnings(write_file: WriteFile, in_tmp: Path) -> None:
    config = load(config_file=write_file(*KAFKA_4_3.splitlines()))

    assert config.node_id == 1
    assert [str(listener) for listener in config.listeners] == ["PLAINTEXT://:9092"]
    assert [str(listener) for listener in config.advertised_listeners.values()] == ["PLAINTEXT://localhost:9092"]
    assert config.log_dirs == (in_tmp / "kraft-combined-logs",)
    assert len(config.warnings) == 2
    assert config.warnings[0].startswith("properties of Apache Kafka that Barnabas does not serve")
    assert config.warnings[1] == (
        "PLAINTEXT://:9092 is open to the network without encryption and without authentication (PLAINTEXT)"
    )


def test_kafkas_own_file_for_zookeeper_loads_with_one_warning(write_file: WriteFile) -> None:
    config = load(config_file=write_file(*KAFKA_3_9_WITH_ZOOKEEPER.splitlines()))

    assert config.node_id == 0
    assert len(config.warnings) == 1
    assert "zookeeper.connect in server.properties line 14" in config.warnings[0]


def test_the_file_that_we_ship_loads_and_sets_nothing() -> None:
    shipped = Path(__file__).parents[2] / "config" / "server.properties"

    config = load(config_file=shipped)

    assert config.warnings == ()
    assert all(value.is_default for _, value in config.describe())


# Immutability and typed access


def test_a_getter_refuses_another_type_and_another_name() -> None:
    config: BrokerConfig = load()

    assert config.get_float("log.cleaner.min.cleanable.ratio") == 0.5
    assert config.get_list("log.cleanup.policy") == ("delete",)
    for getter, name in (
        (config.get_int, "log.preallocate"),
        (config.get_int, "log.retention.ms"),
        (config.get_bool, "num.partitions"),
        (config.get_str, "num.partitions"),
        (config.get_list, "compression.type"),
        (config.get_float, "compression.type"),
    ):
        with pytest.raises(TypeError):
            getter(name)
    with pytest.raises(KeyError):
        config.get("log.segmnt.bytes")


def test_a_configuration_cannot_be_changed() -> None:
    config = load()

    with pytest.raises(AttributeError):
        config.node_id = 3  # type: ignore[misc]
    with pytest.raises(AttributeError):
        config.other = 3  # type: ignore[attr-defined]
