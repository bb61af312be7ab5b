"""Barnabas' own APIs in Kafka's protocol: who is told of them, what they answer, and who may use them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any, TypeVar

import pytest

from barnabas.broker.authorization.authorizer import STANDARD_AUTHORIZER
from barnabas.clients.addresses import Address
from barnabas.clients.config import ClientConfig
from barnabas.clients.network.connection import Connection
from barnabas.clients.network.node_connections import settings_of
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.apis import KAFKA_APIS, OWN_APIS
from barnabas.protocol.messages.api_key import OWN_KEYS, ApiKey
from barnabas.protocol.messages.cluster.explain_start import ExplainStartRequest
from barnabas.protocol.messages.cluster.mirrors import (
    MirrorAction,
    MirrorField,
    MirrorsRequest,
    definition_fields,
)
from barnabas.protocol.messages.cluster.standby import StandbyAction, StandbyRequest
from barnabas.protocol.messages.groups.explain_group import ExplainGroupRequest
from barnabas.protocol.messages.topics.cleaning import CleaningRequest, CompactedLog
from barnabas.protocol.messages.topics.explain_topic import ExplainTopicRequest
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.kafka_wire import KafkaWire, schema

T = TypeVar("T")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A broker whose anonymous clients have no rights, and are offered unstable versions."""
    settings = (f"authorizer.class.name={STANDARD_AUTHORIZER}", "unstable.api.versions.enable=true")
    with start_daemon(tmp_path_factory.mktemp("guarded"), *settings) as daemon:
        yield daemon


def connected(daemon: Daemon, use: Callable[[Connection], Awaitable[T]]) -> T:
    async def run() -> T:
        connection = await Connection.open(Address(daemon.host, daemon.port), settings_of(ClientConfig()))
        try:
            return await use(connection)
        finally:
            connection.close()

    return asyncio.run(run())


def ask(daemon: Daemon, request: Any) -> Any:
    return connected(daemon, lambda connection: connection.request(request))


def mirrors(daemon: Daemon, action: MirrorAction, name: str, fields: Mapping[str, Any] | None = None) -> Any:
    definition = definition_fields(fields or {})
    return ask(daemon, MirrorsRequest(action=action, names=[name], definition=definition))


@pytest.mark.parametrize(
    ("version", "software"), [(3, "barnabas"), (4, "barnabas"), (4, "librdkafka"), (4, "barnabas-python"), (2, "")]
)
def test_they_are_listed_to_clients_whose_software_is_barnabas(daemon: Daemon, version: int, software: str) -> None:
    fields = {"client_software_name": software, "client_software_version": "1"} if version >= 3 else {}
    with KafkaWire(daemon.host, daemon.port) as client:
        listed = {each.api_key for each in client.call("api_versions", version, **fields).api_keys}
    own = {int(each.key) for each in OWN_APIS}
    assert listed.intersection(OWN_KEYS) == (own if software == "barnabas" else set())
    assert len(listed - own) >= len(KAFKA_APIS) - 2


@pytest.mark.parametrize(("software", "highest"), [("barnabas", 6), ("librdkafka", 5)])
def test_an_unstable_version_is_for_clients_whose_software_is_barnabas(
    daemon: Daemon, software: str, highest: int
) -> None:
    with KafkaWire(daemon.host, daemon.port) as client:
        answer = client.call("api_versions", 4, client_software_name=software, client_software_version="1")
        listed = {each.api_key: each.max_version for each in answer.api_keys}
        assert listed[ApiKey.INIT_PRODUCER_ID] == highest
        if highest == 6:
            assert initialize(client, 6).error_code == ErrorCode.NONE
            return
        assert initialize(client, 5).error_code == ErrorCode.NONE
        with pytest.raises(ConnectionError):
            initialize(client, 6)
    assert (
        "init_producer_id is served in versions 0 to 5: Kafka holds the next one back as unstable; "
        "unstable.api.versions.enable=true serves it"
    ) in daemon.log


def test_an_unstable_version_is_for_everybody_where_that_is_configured(guarded: Daemon) -> None:
    with KafkaWire(guarded.host, guarded.port) as client:
        assert initialize(client, 6).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        answer = client.call("api_versions", 4, client_software_name="librdkafka", client_software_version="1")
        assert {each.api_key: each.max_version for each in answer.api_keys}[ApiKey.INIT_PRODUCER_ID] == 6


@pytest.mark.parametrize("software", ["barnabas", "librdkafka"])
def test_a_warning_is_the_message_of_a_success_for_clients_whose_software_is_barnabas(
    daemon: Daemon, software: str
) -> None:
    topic = f"warned-{software}"
    with KafkaWire(daemon.host, daemon.port) as client:
        client.call("api_versions", 4, client_software_name=software, client_software_version="1")
        kio = schema("create_topics", 7, "request")
        small = kio.CreatableTopicConfig(name="segment.bytes", value="16384")
        asked = kio.CreatableTopic(name=topic, num_partitions=1, replication_factor=1, assignments=(), configs=(small,))
        (created,) = client.call("create_topics", 7, topics=(asked,)).topics
        kio = schema("incremental_alter_configs", 1, "request")
        smaller = kio.AlterableConfig(name="segment.bytes", config_operation=0, value="15000")
        resource = kio.AlterConfigsResource(resource_type=2, resource_name=topic, configs=(smaller,))
        (altered,) = client.call("incremental_alter_configs", 1, resources=(resource,), validate_only=False).responses
    assert (created.error_code, altered.error_code) == (ErrorCode.NONE, ErrorCode.NONE)
    for each in (created, altered):
        if software == "barnabas":
            assert "Apache Kafka 4.x" in each.error_message
        else:
            assert each.error_message is None


def initialize(client: KafkaWire, version: int) -> Any:
    return client.call("init_producer_id", version, transactional_id=None, transaction_timeout=timedelta(seconds=1))


def test_the_active_broker_of_a_standby_tells_its_identity_and_its_metadata(daemon: Daemon) -> None:
    identity = ask(daemon, StandbyRequest(action=StandbyAction.IDENTIFY)).identity
    assert len(identity.cluster_id) == 22
    assert [len(each) for each in identity.directory_ids] == [16]
    told = ask(daemon, StandbyRequest(action=StandbyAction.METADATA))
    assert (told.error, told.is_other_log) == (ErrorCode.NONE, False)
    assert told.end_offset > 0
    assert told.data or told.snapshot is not None


def test_a_mirror_is_created_altered_described_and_deleted(daemon: Daemon) -> None:
    fields = {"bootstrap": ["127.0.0.1:1"], "topics": ["own-.*"], "desired": "paused"}
    created = mirrors(daemon, MirrorAction.CREATE, "own", fields)
    (mirror,) = created.mirrors
    assert (created.error, mirror.name, mirror.state) == (ErrorCode.NONE, "own", "paused")
    assert mirror.fields | fields == mirror.fields
    mirrors(daemon, MirrorAction.ALTER, "own", {"max_bytes_per_second": 7})
    (mirror,) = ask(daemon, MirrorsRequest(action=MirrorAction.DESCRIBE)).mirrors
    assert (mirror.fields["max_bytes_per_second"], mirror.fields["command_config"]) == (7, None)
    assert mirrors(daemon, MirrorAction.CREATE, "own", fields).error == ErrorCode.DUPLICATE_RESOURCE
    deleted = mirrors(daemon, MirrorAction.DELETE, "own")
    assert (deleted.error, deleted.released) == (ErrorCode.NONE, [])
    assert mirrors(daemon, MirrorAction.DESCRIBE, "own").error == ErrorCode.RESOURCE_NOT_FOUND


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ([MirrorField("topics", "[")], "topics is not JSON: "),
        ([MirrorField("topics", "[" * 100_000)], "topics is not JSON: "),
        ([MirrorField("topics", '["a"]'), MirrorField("topics", '["b"]')], "topics is given twice"),
        ([MirrorField("topics", '"a"')], "topics is not a list of texts"),
        ([MirrorField("colour", "1")], "unknown field colour; "),
    ],
    ids=["cut", "deep", "twice", "type", "unknown"],
)
@pytest.mark.parametrize("action", [MirrorAction.CREATE, MirrorAction.PROMOTE])
def test_a_definition_that_is_wrong_is_refused(
    daemon: Daemon, action: MirrorAction, fields: list[MirrorField], reason: str
) -> None:
    found = ask(daemon, MirrorsRequest(action=action, names=["wrong"], definition=fields))
    assert found.error == ErrorCode.INVALID_REQUEST
    assert reason in found.message


@pytest.mark.parametrize(
    ("request_", "first"),
    [
        (StandbyRequest(action="clone"), "identify"),
        (MirrorsRequest(action="clone", names=["m"]), "create"),
    ],
    ids=["standby", "mirrors"],
)
def test_a_request_with_an_unknown_action_is_refused(daemon: Daemon, request_: Any, first: str) -> None:
    found = ask(daemon, request_)
    assert found.error == ErrorCode.INVALID_REQUEST
    assert found.message.startswith(f"action='clone' is not one of {first}, ")


def test_a_topic_a_group_and_the_start_are_explained(daemon: Daemon) -> None:
    daemon.create_topic("explained", partitions=2)
    found = ask(daemon, ExplainTopicRequest(topic="explained"))
    assert [each.partition for each in found.partitions] == [0, 1]
    assert [segment.kept_by for each in found.partitions for segment in each.segments] == [("active_segment",)] * 2
    one = ask(daemon, ExplainTopicRequest(topic="explained", partition=1))
    assert [each.partition for each in one.partitions] == [1]
    setting = ask(daemon, ExplainTopicRequest(topic="explained", setting="retention.ms"))
    assert [(each.name, each.value) for each in setting.settings] == [("retention.ms", "-1")]
    start = ask(daemon, ExplainStartRequest())
    assert 0 < start.began_ms <= start.loaded_ms <= start.ready_ms
    assert {each.api for each in start.latencies} >= {"explain_topic", "api_versions"}
    assert ask(daemon, ExplainGroupRequest(group_id="none")).error == 69


def test_the_compacted_logs_are_described(daemon: Daemon) -> None:
    daemon.create_topic("cleaned", partitions=2, configs={"cleanup.policy": "compact"})
    daemon.create_topic("kept", partitions=1)
    found = ask(daemon, CleaningRequest(topics=["kept", "cleaned", "missing"]))
    directory = daemon.directory / "data"
    assert found.logs == [CompactedLog(str(directory), "cleaned", number, -1, 0.0, "idle") for number in (0, 1)]
    every = ask(daemon, CleaningRequest()).logs
    assert [each for each in every if each.topic == "cleaned"] == found.logs
    assert not [each for each in every if each.topic == "kept"]
    assert ask(daemon, CleaningRequest(topics=[])).logs == []


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (MirrorsRequest(action=MirrorAction.DESCRIBE), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (MirrorsRequest(action="clone"), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (StandbyRequest(action=StandbyAction.IDENTIFY), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (CleaningRequest(), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (ExplainStartRequest(), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (ExplainTopicRequest(topic="t"), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (ExplainGroupRequest(group_id="g"), ErrorCode.GROUP_AUTHORIZATION_FAILED),
    ],
    ids=["mirrors", "mirrors_unknown", "standby", "cleaning", "explain_start", "explain_topic", "explain_group"],
)
def test_they_need_the_rights_that_they_need_in_the_native_dialect(
    guarded: Daemon, request_: Any, code: ErrorCode
) -> None:
    assert ask(guarded, request_).error == code
