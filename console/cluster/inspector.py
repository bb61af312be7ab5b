"""Inspector: what only Barnabas tells and costs its broker some work, so that it is asked in the background.

Every log is explained for it, for the forecast of the disks and for failed compactions. It is made at most once a
minute, only while somebody looks, and with pauses that leave the broker most of its time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar

from barnabas.clients.admin.admin import Admin
from barnabas.clients.errors import ClientError, RefusedError
from barnabas.console.cluster.latency import Latency, latencies_between
from barnabas.console.cluster.snapshot import Snapshot, TopicFacts
from barnabas.explanation.group_findings import explain_group
from barnabas.explanation.space import file_systems_of
from barnabas.explanation.space_findings import FileSystemSpace, explain_space
from barnabas.explanation.transaction_findings import OpenInPartition, PartitionFacts, explain_partition
from barnabas.explanation.warnings import (
    compaction_warnings,
    config_warnings,
    group_warnings,
    mirror_warnings,
    shortened,
    space_warnings,
    transaction_warnings,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.cluster.explain_start import ExplainStartResponse, TaskRuns
from barnabas.protocol.messages.topics.explain_topic import ExplainTopicResponse
from barnabas.protocol.topic_partition import TopicPartition

_INTERVAL_S: Final = 60.0
_PAUSES_PER_REQUEST: Final = 4
"""After each request for one topic or group, the broker is left alone for so many times its duration."""

_HANGS_AFTER_MS: Final = 15 * 60 * 1000
"""Kafka's longest transaction.max.timeout.ms: a younger transaction may be ended by its coordinator."""

T = TypeVar("T")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was found. `problems` are sentences about what could not be asked."""

    taken_at_ms: int
    spaces: Sequence[FileSystemSpace]
    warnings: Sequence[str]
    problems: Sequence[str]
    tasks: Sequence[TaskRuns] = ()
    latencies: Sequence[Latency] = ()
    """Of requests since the inspection before, or the broker's start."""
    client_metrics: int = 0
    """Values that clients have pushed to the broker."""


class Inspector:
    """Owned by a ClusterAccess. `latest` starts an inspection when one is due."""

    def __init__(self, admin: Admin | None) -> None:
        self._admin = admin
        self._latest: Inspection | None = None
        self._start: ExplainStartResponse | None = None
        self._begun_s = 0.0
        self._task: asyncio.Task[None] | None = None

    def latest(self, snapshot: Snapshot) -> Inspection | None:
        """Return what was found last, None before the first and on Apache Kafka. `snapshot`: what there is now."""
        is_due = self._begun_s == 0.0 or time.monotonic() - self._begun_s >= _INTERVAL_S
        if self._admin is not None and is_due and (self._task is None or self._task.done()):
            self._begun_s = time.monotonic()
            self._task = asyncio.create_task(self._inspect(self._admin, snapshot), name="console-inspector")
        return self._latest

    async def close(self) -> None:
        """End the inspection. Idempotent."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _inspect(self, admin: Admin, snapshot: Snapshot) -> None:
        try:
            inspection_round = _Round(admin, snapshot, self._start)
            self._latest = await inspection_round.run()
            self._start = inspection_round.start
        except Exception:
            logger.exception("the cluster could not be inspected; the next attempt is in %d s", _INTERVAL_S)


class _Round:
    """One inspection."""

    def __init__(self, admin: Admin, snapshot: Snapshot, start: ExplainStartResponse | None) -> None:
        """`start`: the broker's counters at the round before; afterwards, at this one."""
        self.start = start
        self._admin = admin
        self._snapshot = snapshot
        self._problems: list[str] = []

    async def run(self) -> Inspection:
        before = self.start
        self.start = await self._ask("no tasks and no latency", self._admin.explain_start())
        explained = {name: answer async for name, answer in self._topics()}
        spaces = await self._spaces(explained)
        failed = [each for name, answer in explained.items() for each in compaction_warnings(name, answer)]
        unread = [each for name, answer in explained.items() for each in config_warnings(name, answer)]
        warnings = [
            *(each for space in spaces for each in space_warnings(space)),
            *shortened(unread, "config that is not understood"),
            *shortened(failed, "partition whose compaction failed"),
            *shortened(await self._groups(), "partition that retention takes from a group"),
            *shortened(await self._transactions(), "hanging transaction"),
            *shortened(await self._mirrors(), "warning of mirror"),
        ]
        problems = shortened(list(dict.fromkeys(self._problems)), "answer that failed")
        return Inspection(
            time.time_ns() // 1_000_000,
            spaces,
            warnings,
            problems,
            () if self.start is None else self.start.tasks,
            () if self.start is None else latencies_between(before, self.start),
            0 if self.start is None else self.start.client_metrics_total,
        )

    async def _ask(self, subject: str, answer: Awaitable[T]) -> T | None:
        """Wait for an answer, then leave the broker alone for a while. None: it failed, which becomes a problem.

        A topic that came or went since the snapshot is none: the next inspection has it, or no longer asks.
        """
        began = time.monotonic()
        try:
            return await answer
        except ClientError as error:
            if isinstance(error, RefusedError) and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return None
            self._problems.append(f"{subject}: {error}")
            return None
        finally:
            await asyncio.sleep(_PAUSES_PER_REQUEST * (time.monotonic() - began))

    async def _topics(self) -> AsyncIterator[tuple[str, ExplainTopicResponse]]:
        for name in self._snapshot.topics:
            answer = await self._ask(f"topic {name} is not explained", self._admin.explain_topic(name))
            if answer is not None:
                yield name, answer

    async def _spaces(self, explained: dict[str, ExplainTopicResponse]) -> Sequence[FileSystemSpace]:
        directories = await self._ask("no forecast of the disks", self._admin.describe_log_dirs())
        return [] if directories is None else explain_space(file_systems_of(directories), explained)

    async def _groups(self) -> list[str]:
        found: list[str] = []
        for name, facts in self._snapshot.groups.items():
            if not facts.lag:
                continue
            answer = await self._ask(f"group {name} is not explained", self._admin.explain_group(name))
            if answer is not None:
                found += group_warnings(explain_group(name, answer))
        return found

    async def _transactions(self) -> list[str]:
        # By topic: a broker refuses the whole question for one partition that it may not answer.
        return [sentence for topic in self._snapshot.topics.values() for sentence in await self._hanging(topic)]

    async def _hanging(self, topic: TopicFacts) -> list[str]:
        partitions = [TopicPartition(topic.name, each.partition) for each in topic.partitions if each.leader >= 0]
        subject = f"hanging transactions of topic {topic.name} are not looked for"
        hanging = await self._ask(
            subject,
            self._admin.find_hanging_transactions(partitions, longer_than_ms=_HANGS_AFTER_MS, missing_ok=True),
        )
        if not hanging:
            return []
        where = dict.fromkeys(each.topic_partition for each in hanging)
        opened = await self._ask(subject, self._admin.open_transactions(where)) or ()
        now_ms = time.time_ns() // 1_000_000
        found: list[str] = []
        for partition in where:
            there = tuple(
                OpenInPartition(each.producer_id, each.producer_epoch, each.start_offset, each.last_timestamp)
                for each in opened
                if each.topic_partition == partition
            )
            first = min((each.start_offset for each in there), default=0)
            finding = explain_partition(PartitionFacts(partition, first, first, there), (), now_ms=now_ms)
            hanging_from = {
                each.producer_id: each.start_offset for each in hanging if each.topic_partition == partition
            }
            found += transaction_warnings(finding, hanging_from, now_ms=now_ms)
        return found

    async def _mirrors(self) -> list[str]:
        mirrors = await self._ask("mirrors are not shown", self._admin.mirrors.describe_all())
        return [sentence for each in mirrors or () for sentence in mirror_warnings(each)]
