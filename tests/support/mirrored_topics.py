"""Mirrors and mirrored topics in the metadata of a stopped broker, without a source."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from barnabas.broker.metadata.mirrors.definitions import plan_create_mirror
from barnabas.broker.metadata.mirrors.image import mirror_record
from barnabas.broker.metadata.mirrors.topics import plan_take_topic
from barnabas.broker.metadata.placement import Placement
from barnabas.broker.metadata.plan import Plan
from barnabas.config import BrokerConfig, Setting
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.mirrors.definition import MirrorDefinition
from tests.support.storage.metadata_store import Opened

SOURCE_ID = bytes(range(16))


def broker_config(*directories: Path) -> BrokerConfig:
    """Return the configuration of a broker with these log directories."""
    return BrokerConfig.of({"log.dirs": Setting(",".join(map(str, directories)), "the test")})


def store_definition(config: BrokerConfig, definition: MirrorDefinition) -> None:
    """Store a definition as it is, also one that a request would be refused for."""
    opened = Opened(config)
    try:
        opened.store.change(lambda _: Plan([], [mirror_record(definition.key, definition.text())]))
    finally:
        opened.close()


def add_mirror(
    config: BrokerConfig, name: str, topics: Mapping[str, int], *, configs: Mapping[str, str] | None = None, **more: Any
) -> None:
    """Define a paused mirror and let it take topics, given with their partition counts."""
    opened = Opened(config)
    try:
        store = opened.store
        fields = {"bootstrap": ["127.0.0.1:1"], "topics": [".*"], "desired": "paused", **more}
        store.change(
            lambda image: plan_create_mirror(image, name, fields, node_id=store.node_id, cluster_id=store.cluster_id)
        )
        for topic, partitions in topics.items():
            (result,) = store.change(
                lambda image, topic=topic, partitions=partitions: plan_take_topic(  # type: ignore[misc]
                    image,
                    name,
                    topic,
                    source_id=SOURCE_ID,
                    partitions=partitions,
                    configs=configs or {},
                    config=config,
                    placement=Placement(store.node_id, list(store.directory_ids.values()), image),
                )
            )
            assert result.error is ErrorCode.NONE, result.message
    finally:
        opened.close()
