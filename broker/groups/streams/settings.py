"""Settings of streams groups, from the broker's properties and a group's own configs, and their context."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from barnabas.config.group_configs import (
    STREAMS_ASSIGNMENT_INTERVAL,
    STREAMS_HEARTBEAT_INTERVAL,
    STREAMS_INITIAL_DELAY,
    STREAMS_SESSION_TIMEOUT,
    STREAMS_STANDBY_REPLICAS,
    group_value,
)
from barnabas.protocol.metadata.levels import STREAMS_VERSION

if TYPE_CHECKING:
    from barnabas.broker.groups.timers import GroupClock
    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.config.broker_config import BrokerConfig


class StreamsGroupSettings(NamedTuple):
    """The broker's settings. `initial_delay_ms`: how long a group's first assignment waits for more members."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    max_size: int = 2**31 - 1
    standby_replicas: int = 0
    initial_delay_ms: int = 3_000
    assignment_interval_ms: int = 1_000
    is_enabled: bool = True
    config: BrokerConfig | None = None
    """The source of the other values, with the bounds of groups' own configs. None: groups have no configs."""

    @classmethod
    def of(cls, config: BrokerConfig) -> StreamsGroupSettings:
        """Return the settings that the properties give."""
        return cls(
            session_timeout_ms=config.get_int("group.streams.session.timeout.ms"),
            heartbeat_interval_ms=config.get_int("group.streams.heartbeat.interval.ms"),
            max_size=config.get_int("group.streams.max.size"),
            standby_replicas=config.get_int("group.streams.num.standby.replicas"),
            initial_delay_ms=config.get_int("group.streams.initial.rebalance.delay.ms"),
            assignment_interval_ms=config.get_int("group.streams.assignment.interval.ms"),
            is_enabled="streams" in config.get_list("group.coordinator.rebalance.protocols"),
            config=config,
        )

    def with_overrides(self, overrides: Mapping[str, str]) -> StreamsGroupSettings:
        """Return the settings of a group with configs of its own."""
        if self.config is None:
            return self
        return self._replace(
            session_timeout_ms=group_value(self.config, STREAMS_SESSION_TIMEOUT, overrides),
            heartbeat_interval_ms=group_value(self.config, STREAMS_HEARTBEAT_INTERVAL, overrides),
            standby_replicas=group_value(self.config, STREAMS_STANDBY_REPLICAS, overrides),
            initial_delay_ms=group_value(self.config, STREAMS_INITIAL_DELAY, overrides),
            assignment_interval_ms=group_value(self.config, STREAMS_ASSIGNMENT_INTERVAL, overrides),
        )


class StreamsContext(NamedTuple):
    """What a change of a group depends on besides the group. `image` returns the present metadata."""

    settings: StreamsGroupSettings
    clock: GroupClock
    image: Callable[[], MetadataImage]

    def settings_of(self, group_id: str) -> StreamsGroupSettings:
        """Return a group's settings: the broker's, overridden by its own configs as they are now."""
        overrides = self.image().group_configs(group_id)
        return self.settings.with_overrides(overrides) if overrides else self.settings

    @property
    def is_enabled(self) -> bool:
        """Whether the protocol is served: group.coordinator.rebalance.protocols names it, streams.version is 1."""
        return self.settings.is_enabled and self.image().features.get(STREAMS_VERSION, 0) > 0
