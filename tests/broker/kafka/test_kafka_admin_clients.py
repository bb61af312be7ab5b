"""Unpatched admin clients of confluent-kafka, kafka-python and aiokafka, with a restart of the daemon in between."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import Daemon, start_daemon

TIMEOUT_S = 30.0


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with start_daemon(tmp_path) as running:
        yield running


def done(futures: dict[Any, Future[Any]]) -> Any:
    """Return the result of the only future."""
    (future,) = futures.values()
    return future.result(TIMEOUT_S)


def test_confluent_kafka_administers(daemon: Daemon) -> None:
    from confluent_kafka import KafkaException, TopicCollection

    api: Any = import_module("confluent_kafka.admin")  # confluent_kafka.admin does not export its names to mypy

    # Refused futures keep the frames that know the client: without its end it would try to connect until a collection.
    with api.AdminClient({"bootstrap.servers": daemon.bootstrap}) as admin:
        done(admin.create_topics([api.NewTopic("t", 2, 1, config={"retention.ms": "5000"})]))
        with pytest.raises(KafkaException, match="already exists"):
            done(admin.create_topics([api.NewTopic("t", 2, 1)]))
        done(admin.create_partitions([api.NewPartitions("t", 3)]))
        topic = api.ConfigResource(api.ConfigResource.Type.TOPIC, "t")
        entry = done(admin.describe_configs([topic]))["retention.ms"]
        assert (entry.value, entry.source, entry.is_read_only) == ("5000", 1, False)
        assert "log.retention.ms" in entry.synonyms
        topic.add_incremental_config(
            api.ConfigEntry("cleanup.policy", "compact", incremental_operation=api.AlterConfigOpType.APPEND)
        )
        done(admin.incremental_alter_configs([topic]))
        broker = api.ConfigResource(api.ConfigResource.Type.BROKER, "1")
        broker.add_incremental_config(
            api.ConfigEntry("log.dirs", "/x", incremental_operation=api.AlterConfigOpType.SET)
        )
        with pytest.raises(KafkaException, match="read-only"):
            done(admin.incremental_alter_configs([broker]))
        daemon.restart()
        described = done(admin.describe_topics(TopicCollection(["t"])))
        assert len(described.partitions) == 3
        topic = api.ConfigResource(api.ConfigResource.Type.TOPIC, "t")
        assert done(admin.describe_configs([topic]))["cleanup.policy"].value == "delete,compact"
        assert admin.describe_cluster().result(TIMEOUT_S).controller.id == 1
        done(admin.delete_topics(["t"]))
        assert "t" not in admin.list_topics(timeout=TIMEOUT_S).topics


# kafka-python calls the deprecated importlib.resources.read_text
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_kafka_python_administers(daemon: Daemon) -> None:
    from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewPartitions, NewTopic
    from kafka.errors import TopicAlreadyExistsError

    admin = KafkaAdminClient(bootstrap_servers=daemon.bootstrap)
    topic = NewTopic("t", 2, 1, topic_configs={"retention.ms": "5000"})
    admin.create_topics([topic])
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topics([topic])
    admin.create_partitions({"t": NewPartitions(3)})
    admin.close()
    daemon.restart()
    admin = KafkaAdminClient(bootstrap_servers=daemon.bootstrap)
    (described,) = admin.describe_topics(["t"])
    assert len(described["partitions"]) == 3
    configs = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, "t")])
    assert "5000" in str(configs)
    admin.delete_topics(["t"])
    assert "t" not in admin.list_topics()
    admin.close()


def test_aiokafka_administers(daemon: Daemon) -> None:
    from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
    from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

    async def first() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=daemon.bootstrap)
        await admin.start()
        created = await admin.create_topics([NewTopic("t", 2, 1, topic_configs={"retention.ms": "5000"})])
        assert [error[1] for error in created.topic_errors] == [0]
        await admin.create_partitions({"t": NewPartitions(3)})
        resource = ConfigResource(ConfigResourceType.TOPIC, "t", configs={"retention.ms": "6000"})
        await admin.alter_configs([resource])
        await admin.close()

    async def second() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=daemon.bootstrap)
        await admin.start()
        (described,) = await admin.describe_topics(["t"])
        assert len(described["partitions"]) == 3
        (answer,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, "t")])
        assert "6000" in str(answer.resources)
        await admin.delete_topics(["t"])
        assert "t" not in await admin.list_topics()
        await admin.close()

    asyncio.run(first())
    daemon.restart()
    asyncio.run(second())
