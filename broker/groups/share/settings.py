"""Settings of share groups, from the broker's properties and a group's own configs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.config.broker_config import BrokerConfig
from barnabas.config.group_configs import (
    SHARE_ASSIGNMENT_INTERVAL,
    SHARE_DELIVERY_COUNT_LIMIT,
    SHARE_HEARTBEAT_INTERVAL,
    SHARE_ISOLATION_LEVEL,
    SHARE_OFFSET_RESET,
    SHARE_PARTITION_MAX_RECORD_LOCKS,
    SHARE_RECORD_LOCK_DURATION,
    SHARE_RENEW,
    SHARE_SESSION_TIMEOUT,
    group_value,
    own_value,
)
from barnabas.config.offset_reset import LATEST, OffsetReset, parse_offset_reset


class ShareGroupSettings(NamedTuple):
    """The settings of one group; those of the broker for a group without configs of its own.

    max_size                       members of a group
    initialize_retry_interval_ms   time until the initialization of a partition is repeated
    max_sessions                   share sessions of the broker
    offset_reset                   where the group begins in a partition without state
    reads_committed                whether records of open and aborted transactions are left out
    may_renew                      whether a consumer may extend its locks

    The others have the names of the configs.
    """

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 0
    record_lock_duration_ms: int = 30_000
    delivery_count_limit: int = 5
    partition_max_record_locks: int = 2_000
    max_size: int = 200
    initialize_retry_interval_ms: int = 30_000
    max_sessions: int = 2_000
    offset_reset: OffsetReset = LATEST
    reads_committed: bool = False
    may_renew: bool = True
    config: BrokerConfig | None = None
    """The source of the other values, with the bounds of groups' own configs. None: groups have no configs."""

    @classmethod
    def of(cls, config: BrokerConfig) -> ShareGroupSettings:
        """Return the settings that the properties give."""
        return cls(
            session_timeout_ms=config.get_int("group.share.session.timeout.ms"),
            heartbeat_interval_ms=config.get_int("group.share.heartbeat.interval.ms"),
            assignment_interval_ms=config.get_int("group.share.assignment.interval.ms"),
            record_lock_duration_ms=config.get_int("group.share.record.lock.duration.ms"),
            delivery_count_limit=config.get_int("group.share.delivery.count.limit"),
            partition_max_record_locks=config.get_int("group.share.partition.max.record.locks"),
            max_size=config.get_int("group.share.max.size"),
            initialize_retry_interval_ms=config.get_int("group.share.initialize.retry.interval.ms"),
            max_sessions=config.get_int("group.share.max.share.sessions"),
            config=config,
        )

    def with_overrides(self, overrides: Mapping[str, str]) -> ShareGroupSettings:
        """Return the settings of a group with configs of its own (`MetadataImage.group_configs`)."""
        if self.config is None or not overrides:
            return self
        reset = own_value(SHARE_OFFSET_RESET, overrides)
        isolation = own_value(SHARE_ISOLATION_LEVEL, overrides)
        return self._replace(
            session_timeout_ms=group_value(self.config, SHARE_SESSION_TIMEOUT, overrides),
            heartbeat_interval_ms=group_value(self.config, SHARE_HEARTBEAT_INTERVAL, overrides),
            assignment_interval_ms=group_value(self.config, SHARE_ASSIGNMENT_INTERVAL, overrides),
            record_lock_duration_ms=group_value(self.config, SHARE_RECORD_LOCK_DURATION, overrides),
            delivery_count_limit=group_value(self.config, SHARE_DELIVERY_COUNT_LIMIT, overrides),
            partition_max_record_locks=group_value(self.config, SHARE_PARTITION_MAX_RECORD_LOCKS, overrides),
            offset_reset=(parse_offset_reset(reset) or LATEST) if isinstance(reset, str) else LATEST,
            reads_committed=isolation == "read_committed",
            may_renew=own_value(SHARE_RENEW, overrides) is not False,
        )
