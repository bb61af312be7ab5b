"""The topics that the broker makes for itself: their partition counts and configs. The only list of them.

Creations take from it what they do not name, whoever asks for them: a coordinator at its first use, Metadata, or
CreateTopics. A start adds the configs that an existing topic lacks, because with a user topic's defaults retention
would delete state that is still needed. Values that somebody set are kept.

Sources: Kafka's GroupCoordinatorService.groupMetadataTopicConfigs, TransactionStateManager.transactionTopicConfigs,
ShareCoordinatorService.shareGroupStateTopicConfigs. Kafka sets min.insync.replicas to a property of its own, 2 by
default. A single node has one replica, so these properties are not served and the topics have 1.

Different from Kafka: its CreateTopics gives a topic of such a name a user topic's defaults, and no start looks at it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.protocol.metadata.records import TOPIC_RESOURCE, ConfigRecord
from barnabas.protocol.topic_name import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_TOPIC

if TYPE_CHECKING:
    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.config import BrokerConfig
    from barnabas.protocol.messages.topics.topics import NewTopic

_DELETING: Final = ("cleanup.policy", "retention.ms")
"""Configs whose other values delete records that are still needed."""


class OwnTopic(NamedTuple):
    """One of them. `fixed_configs`: those that no property decides."""

    name: str
    partition_count_property: str
    segment_bytes_property: str
    fixed_configs: Mapping[str, str]

    def partition_count(self, config: BrokerConfig) -> int:
        """Return the partition count of a new topic."""
        return config.get_int(self.partition_count_property)

    def configs(self, config: BrokerConfig) -> dict[str, str]:
        """Return the configs of a new topic."""
        return {**self.fixed_configs, "segment.bytes": str(config.get_int(self.segment_bytes_property))}


CONSUMER_OFFSETS: Final = OwnTopic(
    OFFSETS_TOPIC,
    "offsets.topic.num.partitions",
    "offsets.topic.segment.bytes",
    {"cleanup.policy": "compact", "compression.type": "producer"},
)
TRANSACTION_STATE: Final = OwnTopic(
    TRANSACTION_TOPIC,
    "transaction.state.log.num.partitions",
    "transaction.state.log.segment.bytes",
    {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "1",
        "unclean.leader.election.enable": "false",
    },
)
SHARE_STATE: Final = OwnTopic(
    SHARE_STATE_TOPIC,
    "share.coordinator.state.topic.num.partitions",
    "share.coordinator.state.topic.segment.bytes",
    {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "min.insync.replicas": "1",
        "retention.ms": "-1",
    },
)
OWN_TOPICS: Final[Mapping[str, OwnTopic]] = {
    each.name: each for each in (CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_STATE)
}


def completed(topic: NewTopic, config: BrokerConfig) -> NewTopic:
    """Return a topic to be created, one of our own with the partition count and the configs that it does not name."""
    from barnabas.protocol.messages.topics.topics import DEFAULT_COUNT, config_rows  # late: most starts create no topic

    own = OWN_TOPICS.get(topic.name)
    if own is None:
        return topic
    count = topic.partitions
    if count == DEFAULT_COUNT and not topic.assignments:
        count = own.partition_count(config)
    return topic.replaced(partitions=count, configs=config_rows({**own.configs(config), **topic.values}))


def missing_configs(image: MetadataImage, config: BrokerConfig) -> list[ConfigRecord]:
    """Return the records of the configs that existing topics lack."""
    return [
        ConfigRecord(TOPIC_RESOURCE, topic.name, name, value)
        for topic in OWN_TOPICS.values()
        if topic.name in image.topics
        for name, value in sorted(topic.configs(config).items())
        if name not in image.topic_configs(topic.name)
    ]


def _deletes_more(name: str, value: str, right: str) -> bool:
    """Return whether a value of one of _DELETING deletes what the right one keeps."""
    from barnabas.config.property import BadValueError
    from barnabas.config.tables.topic_properties import TOPIC_PROPERTIES

    known = TOPIC_PROPERTIES[name]
    try:
        parsed, kept = known.parse(value), known.parse(right)
    except BadValueError:
        return False  # the log is kept: config/log_config.py
    if isinstance(parsed, tuple) and isinstance(kept, tuple):
        return not set(parsed) <= set(kept)
    return parsed != kept


def config_warnings(image: MetadataImage, added: list[ConfigRecord]) -> list[str]:
    """Return sentences about added configs, and about values that somebody set and that delete needed records."""
    found = []
    for topic in OWN_TOPICS.values():
        configs = image.topic_configs(topic.name)
        texts = [f"{each.name}={each.value}" for each in added if each.resource_name == topic.name]
        if texts:
            found.append(
                f"topic {topic.name} had no configs of its own that keep records which are still needed from being "
                f"deleted: added {' '.join(texts)}"
            )
        for name in _DELETING:
            right, value = topic.fixed_configs.get(name), configs.get(name)
            if topic.name not in image.topics or right is None or value is None:
                continue
            if _deletes_more(name, value, right):
                found.append(
                    f"topic {topic.name} has {name}={value}, which deletes records that are still needed: "
                    f"set {name}={right}"
                )
    return found
