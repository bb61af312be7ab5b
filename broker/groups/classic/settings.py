"""The broker's properties for classic groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from barnabas.config.broker_config import BrokerConfig
    from barnabas.protocol.messages.groups.join_group import JoinGroupRequest


class GroupSettings(NamedTuple):
    """Times in ms: group.min.session.timeout.ms and so on."""

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 0
    max_size: int = 2**31 - 1

    @classmethod
    def of(cls, config: BrokerConfig) -> GroupSettings:
        """Return the settings that the properties give."""
        return cls(
            min_session_timeout_ms=config.get_int("group.min.session.timeout.ms"),
            max_session_timeout_ms=config.get_int("group.max.session.timeout.ms"),
            initial_rebalance_delay_ms=config.get_int("group.initial.rebalance.delay.ms"),
            max_size=config.get_int("group.max.size"),
        )

    def ensure_session_timeout(self, request: JoinGroupRequest) -> None:
        """Raise BrokerError INVALID_SESSION_TIMEOUT for a timeout out of bounds."""
        lowest, highest = self.min_session_timeout_ms, self.max_session_timeout_ms
        if not lowest <= request.session_timeout_ms <= highest:
            raise BrokerError(
                ErrorCode.INVALID_SESSION_TIMEOUT,
                f"a session timeout of {request.session_timeout_ms} ms is not between group.min.session.timeout.ms "
                f"({lowest}) and group.max.session.timeout.ms ({highest})",
            )
