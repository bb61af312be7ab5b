"""Settings of consumer groups, from the broker's properties and a group's own configs, and their context."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from barnabas.config.group_configs import ASSIGNMENT_INTERVAL, HEARTBEAT_INTERVAL, SESSION_TIMEOUT, group_value

if TYPE_CHECKING:
    from barnabas.broker.groups.timers import GroupClock
    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.config.broker_config import BrokerConfig


class MigrationPolicy(Enum):
    """group.consumer.migration.policy: which conversions a group with members may make. An empty one may make both."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def may_upgrade(self) -> bool:
        """Whether a classic group may become a consumer group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def may_downgrade(self) -> bool:
        """Whether a consumer group with only classic members may become a classic group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


class ConsumerGroupSettings(NamedTuple):
    """The broker's settings. The first of `assignors` serves groups whose members name none."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    max_size: int = 2**31 - 1
    classic_max_size: int = 2**31 - 1
    assignment_interval_ms: int = 0
    assignors: Sequence[str] = ("uniform", "range")
    migration: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    is_enabled: bool = True
    config: BrokerConfig | None = None
    """The source of the other values, with the bounds of groups' own configs. None: groups have no configs."""

    @classmethod
    def of(cls, config: BrokerConfig) -> ConsumerGroupSettings:
        """Return the settings that the properties give."""
        return cls(
            session_timeout_ms=config.get_int("group.consumer.session.timeout.ms"),
            heartbeat_interval_ms=config.get_int("group.consumer.heartbeat.interval.ms"),
            max_size=config.get_int("group.consumer.max.size"),
            classic_max_size=config.get_int("group.max.size"),
            assignment_interval_ms=config.get_int("group.consumer.assignment.interval.ms"),
            assignors=tuple(_assignor_name(each) for each in config.get_list("group.consumer.assignors")),
            migration=MigrationPolicy(str(config.get("group.consumer.migration.policy")).lower()),
            is_enabled="consumer" in config.get_list("group.coordinator.rebalance.protocols"),
            config=config,
        )

    def with_overrides(self, overrides: Mapping[str, str]) -> ConsumerGroupSettings:
        """Return the settings of a group with configs of its own."""
        if self.config is None:
            return self
        return self._replace(
            session_timeout_ms=group_value(self.config, SESSION_TIMEOUT, overrides),
            heartbeat_interval_ms=group_value(self.config, HEARTBEAT_INTERVAL, overrides),
            assignment_interval_ms=group_value(self.config, ASSIGNMENT_INTERVAL, overrides),
        )


def _assignor_name(text: str) -> str:
    """Return the short name of an assignor, which Kafka before 4.0 named by its class."""
    return text.rpartition(".")[2].removesuffix("Assignor").lower()


class GroupContext(NamedTuple):
    """What a change of a group depends on besides the group. `image` returns the present metadata."""

    settings: ConsumerGroupSettings
    clock: GroupClock
    image: Callable[[], MetadataImage]

    def settings_of(self, group_id: str) -> ConsumerGroupSettings:
        """Return a group's settings: the broker's, overridden by its own configs as they are now."""
        overrides = self.image().group_configs(group_id)
        return self.settings.with_overrides(overrides) if overrides else self.settings
