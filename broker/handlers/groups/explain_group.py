"""explain_group (10002): a group's latest events, its members' deadlines, and what it has not read.

Needs DESCRIBE on the group (GROUP_AUTHORIZATION_FAILED); partitions of topics that the client may not DESCRIBE are left
out. GROUP_ID_NOT_FOUND: the group has no members, offsets and events. The logs of partitions that the group has not
read to the end are looked at on a thread.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from barnabas.broker.groups.classic.group import ClassicGroup
from barnabas.broker.groups.explanation.lag import CommittedAt, read_lag
from barnabas.broker.groups.explanation.members import member_timings
from barnabas.broker.groups.group import GroupState, GroupType
from barnabas.broker.handlers.authorization import denied_names, ensure_allowed
from barnabas.broker.printable import printable
from barnabas.config.group_configs import group_problems
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.explain_group import (
    ExplainGroupRequest,
    ExplainGroupResponse,
    PartitionLag,
)
from barnabas.protocol.messages.security.resources import Operation, ResourceType

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from barnabas.broker.groups.coordinator import GroupCoordinator
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.network.session import Session
    from barnabas.broker.partitions.registry import PartitionRegistry
    from barnabas.broker.probes import ApiProbe
    from barnabas.broker.storage.log.readable_log import ReadableLog
    from barnabas.broker.storage.served_logs import ServedLogs
    from barnabas.broker.storage.services.clock import Clock


class ExplainGroupHandler:
    """Serves explain_group."""

    def __init__(
        self,
        groups: GroupCoordinator,
        partitions: PartitionRegistry,
        store: MetadataView,
        log_manager: ServedLogs[ReadableLog],
        blocking_io: Executor,
        clock: Clock,
        probe: ApiProbe,
    ) -> None:
        self._groups = groups
        self._partitions = partitions
        self._store = store
        self._log_manager = log_manager
        self._blocking_io = blocking_io
        self._clock = clock
        self._probe = probe

    async def __call__(self, session: Session, request: ExplainGroupRequest) -> ExplainGroupResponse:
        """Answer one request as the module docstring specifies."""
        group_id = request.group_id
        try:
            ensure_allowed(session, Operation.DESCRIBE, ResourceType.GROUP, group_id, ApiKey.EXPLAIN_GROUP)
            self._groups.log.ensure_loaded(group_id)
            answer = self._group(group_id)
        except BrokerError as error:
            self._probe.count_error(error.code.name.lower())
            return ExplainGroupResponse(error=error.code, message=error.message)
        lagging = [(log, each) for log, each in self._committed(session, group_id) if log is not None]
        loop = asyncio.get_running_loop()
        answer.partitions = await loop.run_in_executor(self._blocking_io, self._lags, lagging, answer.now_ms)
        return answer

    def _group(self, group_id: str) -> ExplainGroupResponse:
        """Return what is known without reading logs. Raises BrokerError GROUP_ID_NOT_FOUND."""
        group = self._groups.registry.get(group_id)
        events = self._groups.registry.histories.of(group_id)
        if group is None and not events and group_id not in self._groups.offsets:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {printable(group_id)}")
        if group is None:
            state, kind = GroupState.EMPTY if group_id in self._groups.offsets else GroupState.DEAD, GroupType.CLASSIC
        else:
            state, kind = group.state, group.group_type
        session_timeout_ms = self._groups.session_timeout_ms(group_id)
        return ExplainGroupResponse(
            now_ms=self._clock.wall_ms(),
            state=state.value,
            group_type=kind.value,
            state_since_ms=group.state_since_ms if isinstance(group, ClassicGroup) else None,
            members=[] if group is None else member_timings(group, session_timeout_ms),
            events=events,
            problems=group_problems(self._store.image.group_configs(group_id)),
        )

    def _committed(self, session: Session, group_id: str) -> list[tuple[ReadableLog | None, CommittedAt]]:
        """Return the committed offsets that the client may see, each with its log."""
        committed = self._groups.offsets.committed.of(group_id)
        names = [name for name, _ in committed]
        denied = denied_names(session, Operation.DESCRIBE, ResourceType.TOPIC, names, ApiKey.EXPLAIN_GROUP)
        found = []
        for (topic, number), value in sorted(committed.items()):
            if topic in denied:
                continue
            partition = self._partitions.get(topic, number)
            at = CommittedAt(topic, number, value.offset, value.commit_timestamp)
            found.append((None if partition is None else partition.log, at))
        return found

    def _lags(self, committed: list[tuple[ReadableLog, CommittedAt]], now_ms: int) -> list[PartitionLag]:
        return [read_lag(log, each, self._log_manager, now_ms=now_ms) for log, each in committed]
