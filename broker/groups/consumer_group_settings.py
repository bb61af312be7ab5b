"""What the broker's properties say of consumer groups (group.consumer.*), and what is around a group at a moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from barnabas.broker.groups.group_core import GroupClock
    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.config.broker_config import BrokerConfig


class MigrationPolicy(Enum):
    """group.consumer.migration.policy: which way a group with members may go. An empty one always may."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def may_upgrade(self) -> bool:
        """From classic to consumer."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def may_downgrade(self) -> bool:
        """Back to classic, once all members speak that."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


class ConsumerGroupSettings(NamedTuple):
    """The broker's; `assignors` by name, the first one is for groups that ask for none."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    max_size: int = 2**31 - 1
    classic_max_size: int = 2**31 - 1
    assignment_interval_ms: int = 0
    assignors: Sequence[str] = ("uniform", "range")
    migration: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    is_enabled: bool = True

    @classmethod
    def of(cls, config: BrokerConfig) -> ConsumerGroupSettings:
        """What the properties say."""
        return cls(
            session_timeout_ms=config.get_int("group.consumer.session.timeout.ms"),
            heartbeat_interval_ms=config.get_int("group.consumer.heartbeat.interval.ms"),
            max_size=config.get_int("group.consumer.max.size"),
            classic_max_size=config.get_int("group.max.size"),
            assignment_interval_ms=config.get_int("group.consumer.assignment.interval.ms"),
            assignors=tuple(_assignor_name(each) for each in config.get_list("group.consumer.assignors")),
            migration=MigrationPolicy(str(config.get("group.consumer.migration.policy")).lower()),
            is_enabled="consumer" in config.get_list("group.coordinator.rebalance.protocols"),
        )


def _assignor_name(text: str) -> str:
    """Kafka before 4.0 named them by their classes."""
    return text.rpartition(".")[2].removesuffix("Assignor").lower()


class Surroundings(NamedTuple):
    """`image` gives the metadata of now; it may be replaced between two calls."""

    settings: ConsumerGroupSettings
    clock: GroupClock
    image: Callable[[], MetadataImage]
