"""Promotion: turns mirrored topics into ordinary ones, step by step; the metadata log contains the step.

    promoting              nothing is copied any more; the outcomes of open transactions are looked for
    promoting, prepared    the outcomes are stored: logs are cut and get their markers, offsets of groups are clamped
    promoted               the topics are writable

A step that fails is repeated, and a start of the broker goes on at the stored step. The source is asked once, for a few
seconds; that it is dead delays nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.metadata.directories.standby_state import read_state
from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.metadata.mirrors.promotion import (
    plan_finish_promotion,
    plan_prepare_promotion,
    promoted_epoch,
    promoting_topics,
)
from barnabas.broker.mirrors.copied_log import CopiedChange, CopiedLog
from barnabas.broker.mirrors.following.group_follower import clamp_groups
from barnabas.broker.mirrors.following.local_groups import LocalGroups
from barnabas.broker.mirrors.promotion import evidence
from barnabas.broker.mirrors.promotion.promoted_log import settle_log
from barnabas.broker.mirrors.promotion.settling import (
    CLOCK_TOLERANCE_MS,
    Ending,
    OpenTransaction,
    Outcome,
    settle,
)
from barnabas.broker.mirrors.promotion.source_answers import source_answers
from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.files.failpoints import failpoint
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.clients.errors import ClientError
from barnabas.clients.network.cluster import Cluster
from barnabas.protocol.errors import BrokerError
from barnabas.protocol.mirrors.promotion import PartitionPromotion, TopicPromotion, Undecided
from barnabas.protocol.records.errors import CorruptRecordError
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.broker.mirrors.parts import MirrorParts
    from barnabas.broker.partitions.partition import Partition
    from barnabas.protocol.mirrors.topic import TopicMirror

logger = logging.getLogger(__name__)

_FIRST_RETRY_SECONDS: Final = 1.0
_LONGEST_RETRY_SECONDS: Final = 30.0
_FAILURES: Final = (BrokerError, ClientError, MetadataError, StorageError, CorruptRecordError, OSError, ValueError)


class _Place(NamedTuple):
    """A served partition with a usable log."""

    partition: Partition
    log: PartitionLog


class Promotion:
    """Promotes topics of one mirror. Event loop only."""

    def __init__(self, name: str, parts: MirrorParts) -> None:
        self._name = name
        self._parts = parts
        self._settled: dict[str, tuple[TopicPromotion, TopicPromotion]] = {}
        """Topics whose logs are settled: what was prepared, and what has been done."""
        self.error: str | None = None
        """Why the promotion does not make progress, or None."""

    async def run(self, before: Sequence[asyncio.Task[None]] = ()) -> None:
        """Promote until no topic of the mirror is being promoted. `before`: tasks that may still append."""
        if before:
            await asyncio.wait(before)
        pause = _FIRST_RETRY_SECONDS
        while topics := promoting_topics(self._image, self._name):
            try:
                await self._promote(topics)
                self.error = None
                pause = _FIRST_RETRY_SECONDS
                continue
            except _FAILURES as error:
                self.error = str(error)
                logger.warning("mirror %s: the promotion is tried again in %g s: %s", self._name, pause, error)
            except Exception as error:
                self.error = f"a bug, see the broker's log: {error!r}"
                logger.exception("mirror %s: a bug: the promotion is tried again in %g s", self._name, pause)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_RETRY_SECONDS)

    @property
    def _image(self) -> MetadataImage:
        return self._parts.store.image

    async def _promote(self, topics: Mapping[str, TopicMirror]) -> None:
        """Take the topics through the steps. Raises one of _FAILURES."""
        planned = {topic: each.promoted or TopicPromotion() for topic, each in topics.items()}
        waiting = {topic: each for topic, each in planned.items() if not each.is_prepared}
        if waiting:
            prepared = await self._prepare(waiting)
            failpoint("promotion.decided")
            await self._parts.changes.change(lambda image: plan_prepare_promotion(image, self._name, prepared))
            planned |= prepared
            planned = {topic: each for topic, each in planned.items() if each.is_prepared}
            failpoint("promotion.prepared")
        done = {topic: await self._settle(topic, each) for topic, each in planned.items()}
        failpoint("promotion.settled")
        await self._clamp(done)
        await self._parts.changes.change(lambda image: plan_finish_promotion(image, self._name, done))
        failpoint("promotion.finished")
        self._log_done(done)

    async def _prepare(self, waiting: Mapping[str, TopicPromotion]) -> dict[str, TopicPromotion]:
        """Decide about all open transactions of these topics."""
        places = self._places(waiting)
        found: list[OpenTransaction] = []
        for place in places.values():
            found += await self._on_thread(evidence.open_transactions, place.log)
        outcomes: dict[OpenTransaction, Outcome] = {}
        if found:
            endings = await self._endings(found)
            outcomes = settle(found, endings, {})
            asked = [each for each in found if outcomes[each] is not Outcome.COMMIT]
            if asked:
                outcomes = settle(found, endings, await self._ask_source(asked))
        return {
            topic: await self._prepared(topic, each, places, outcomes)
            for topic, each in waiting.items()
            if topic in self._image.topics  # else it was deleted meanwhile
        }

    async def _endings(self, transactions: Sequence[OpenTransaction]) -> list[Ending]:
        """Return the end markers of the transactions' producers in all copies of the mirror."""
        producer_ids = {each.producer_id for each in transactions}
        since_ms = min(each.began_after_ms for each in transactions) - CLOCK_TOLERANCE_MS
        found: list[Ending] = []
        for place in self._places(self._image.mirrors.topics_of(self._name)).values():
            found += await self._on_thread(evidence.endings, place.log, producer_ids, since_ms)
        return found

    async def _ask_source(self, transactions: Sequence[OpenTransaction]) -> dict[OpenTransaction, Outcome]:
        definition = self._image.mirrors.definitions.get(self._name)
        if definition is None:
            return {}
        try:
            cluster = Cluster(await self._parts.client_config(definition))
        except (ClientError, OSError, ValueError) as error:
            logger.info("mirror %s: the source is not asked about open transactions: %s", self._name, error)
            return {}
        try:
            return await source_answers(cluster, transactions)
        finally:
            await cluster.close()

    async def _prepared(
        self,
        topic: str,
        promotion: TopicPromotion,
        places: Mapping[TopicPartition, _Place],
        outcomes: Mapping[OpenTransaction, Outcome],
    ) -> TopicPromotion:
        rows: dict[int, PartitionPromotion] = {}
        commits: dict[int, tuple[int, ...]] = {}
        topics = self._image.topics
        epoch = max((each.leader_epoch for each in topics[topic].partitions.values()), default=0)
        number = (await self._on_thread(read_state, self._parts.config.broker.metadata_log_dir)).number
        for key, place in places.items():
            if key.topic != topic:
                continue
            epoch = max(epoch, place.log.latest_leader_epoch)
            mine = {each: outcome for each, outcome in outcomes.items() if each.place == key}
            committed = {each.producer_id for each, outcome in mine.items() if outcome is Outcome.COMMIT}
            end = copied_end = place.log.log_end_offset
            undecided = [each.first_offset for each, outcome in mine.items() if outcome is Outcome.UNDECIDED]
            if undecided and promotion.undecided is Undecided.CUT:
                copied_end = max(min(undecided), place.log.log_start_offset)
                committed |= await self._on_thread(evidence.committed_after, place.log, copied_end)
            if committed:
                commits[key.partition] = tuple(sorted(committed))
            source_epoch = place.log.core.epochs.epoch_for(copied_end - 1)
            rows[key.partition] = PartitionPromotion(copied_end, source_epoch, copied_end, cut=end - copied_end)
        return replace(promotion, leader_epoch=promoted_epoch(epoch, number), commits=commits, partitions=rows)

    async def _settle(self, topic: str, promotion: TopicPromotion) -> TopicPromotion:
        """Carry out what is prepared, in all partitions; once, if a later step fails and all are repeated."""
        known = self._settled.get(topic)
        if known is not None and known[0] == promotion:
            return known[1]
        places = self._places([topic])
        rows = await asyncio.gather(
            *(self._settle_partition(key, place, promotion) for key, place in places.items()), return_exceptions=True
        )
        done: dict[int, PartitionPromotion] = {}
        for key, row in zip(places, rows, strict=True):
            if isinstance(row, BaseException):
                raise row  # after all have ended: the next try changes the same logs
            done[key.partition] = row
        settled = replace(promotion, commits={}, partitions=done)
        self._settled[topic] = promotion, settled
        return settled

    async def _settle_partition(
        self, key: TopicPartition, place: _Place, promotion: TopicPromotion
    ) -> PartitionPromotion:
        end = place.log.log_end_offset
        planned = promotion.partitions.get(key.partition, PartitionPromotion(end, -1, end))
        copied = CopiedLog(place.partition, place.log, self._parts.log_manager, keeps_cut=True)
        commits = promotion.commits.get(key.partition, ())
        row: PartitionPromotion = await self._on_thread(
            settle_log, place.log, copied, planned, commits, promotion.leader_epoch
        )
        copied.publish(CopiedChange(records=row.end - row.copied_end, has_cut=True))
        return row

    async def _clamp(self, done: Mapping[str, TopicPromotion]) -> None:
        """Move committed offsets beyond the end of a promoted partition back to it."""
        self._parts.group_offsets.summaries()  # raises while groups are loaded
        ends = {
            TopicPartition(topic, number): row.end
            for topic, each in done.items()
            for number, row in each.partitions.items()
        }
        clamped = await clamp_groups(LocalGroups(self._parts.group_offsets), set(done), ends.get)
        for group_id, moved in clamped.moved.items():
            logger.info("mirror %s: moved offsets of group %s to the end, offsets=%d", self._name, group_id, moved)
        for group_id, problem in clamped.problems.items():
            logger.warning("mirror %s: offsets of group %s are not moved: %s", self._name, group_id, problem)

    def _places(self, topics: Mapping[str, object] | Sequence[str]) -> dict[TopicPartition, _Place]:
        """Return the partitions with a usable log. The promotion of the others takes place without them."""
        found: dict[TopicPartition, _Place] = {}
        for topic in topics:
            existing = self._image.topics.get(topic)
            for number in () if existing is None else existing.partitions:
                partition = self._parts.partitions.get(topic, number)
                if partition is not None and isinstance(partition.log, PartitionLog) and partition.is_available:
                    found[TopicPartition(topic, number)] = _Place(partition, partition.log)
        return found

    async def _on_thread(self, work: Callable[..., Any], *arguments: object) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._parts.executor, work, *arguments)

    def _log_done(self, done: Mapping[str, TopicPromotion]) -> None:
        for topic, each in done.items():
            rows = each.partitions.values()
            logger.info(
                "mirror %s: topic %s is promoted, partitions=%d committed=%d aborted=%d cut_offsets=%d leader_epoch=%d",
                self._name,
                topic,
                len(rows),
                sum(row.committed for row in rows),
                sum(row.aborted for row in rows),
                sum(row.cut for row in rows),
                each.leader_epoch,
            )
