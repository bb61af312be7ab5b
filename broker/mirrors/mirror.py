"""One running mirror: looks at the source's topics now and then, and keeps a fetcher for each of its leaders.

A look takes new topics, lets grown ones grow, raises leader epochs, follows configs, and hands each partition to the
fetcher of its leader. It runs every `metadata_max_age_ms` of the definition, and soon after a fetcher has lost a leader
or a topic.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.broker.metadata.mirrors.definitions import pattern_fault
from barnabas.broker.metadata.mirrors.topics import (
    plan_follow_configs,
    plan_forget_deleted,
    plan_grow_topic,
    plan_raise_leader_epochs,
    plan_set_topic_mirror,
    plan_take_topic,
)
from barnabas.broker.mirrors.byte_rate import ByteRate
from barnabas.broker.mirrors.copied_log import CopiedLog
from barnabas.broker.mirrors.discovery import Discovery, discover, named_topics, needed_epochs
from barnabas.broker.mirrors.followed_configs import followed_configs
from barnabas.broker.mirrors.following.group_follower import GroupFollower
from barnabas.broker.mirrors.following.local_groups import LocalGroups
from barnabas.broker.mirrors.following.source_groups import SourceGroups
from barnabas.broker.mirrors.kafka_source import KafkaSource
from barnabas.broker.mirrors.leader_fetcher import LeaderFetcher
from barnabas.broker.mirrors.leader_fetchers import LeaderFetchers
from barnabas.broker.mirrors.mirrored_partition import MirroredPartition
from barnabas.broker.mirrors.status import MirrorState, MirrorStatus, TopicProblem
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.clients.errors import ClientError
from barnabas.clients.network.cluster import Cluster
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.mirrors.definition import EARLIEST
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.broker.metadata.placement import Placement
    from barnabas.broker.metadata.plan import Plan
    from barnabas.broker.mirrors.parts import MirrorParts
    from barnabas.broker.mirrors.source import Source, SourceMetadata, SourceTopic
    from barnabas.protocol.messages.topics.topics import CreatableTopicResult, CreatePartitionsTopicResult
    from barnabas.protocol.mirrors.definition import MirrorDefinition
    from barnabas.protocol.mirrors.topic import TopicMirrorState

    R = TypeVar("R", CreatableTopicResult, CreatePartitionsTopicResult)
    TopicPlan = Callable[[MetadataImage, Placement], Plan[R]]

logger = logging.getLogger(__name__)

CONFIGS_SECONDS: Final = 30.0
"""Between two looks at the configs of the source's topics."""

_SHORTEST_LOOK_SECONDS: Final = 0.2
_REQUEST_INTERVAL_SECONDS: Final = 0.005
"""Of small fetches: what a mirror adds to the delay of a record at most, for a third of the CPU at 1,000 a second."""
_LONGEST_BACKOFF_SECONDS: Final = 10.0
_NO_CONFIGS: Final = (
    "its records are copied, its configs are not: the source does not tell them, which needs DESCRIBE_CONFIGS of the "
    "topic (or use --no-follow-configs)"
)


class Mirror:
    """A mirror that runs as one task, with one more for each leader. Event loop only."""

    def __init__(self, definition: MirrorDefinition, parts: MirrorParts) -> None:
        self.definition = definition
        self._parts = parts
        self._source: Source | None = None
        self._loop = asyncio.get_running_loop()
        self._rate = ByteRate(definition.max_bytes_per_second, self._loop.time)
        self._fetchers = LeaderFetchers(definition.name, self._make_fetcher)
        self._groups: GroupFollower | None = None
        self._following: asyncio.Task[None] | None = None
        self._look_now = asyncio.Event()
        self._configs_due = 0.0
        self._without_configs: set[str] = set()
        self._gone_before: frozenset[str] = frozenset()
        """Topics that were deleted here and that the source did not have at the last look."""
        """Topics whose configs the source has not told."""
        self.partitions: dict[TopicPartition, MirroredPartition] = {}
        """All copied partitions."""
        self.problems: Mapping[str, str] = {}
        """Topics that are not copied, or not with the source's configs, with the reason."""
        self.error: str | None = None
        """Why the source cannot be looked at, or None."""
        self.has_looked = False
        """Whether the source's topics are known."""

    async def run(self) -> None:
        """Mirror until cancelled."""
        backoff = _SHORTEST_LOOK_SECONDS
        try:
            while True:
                wait = self.definition.metadata_max_age_ms / 1000
                try:
                    source = self._source or await self._open()
                    self._look_now.clear()
                    await self._look(source)
                    self._note_error(None)
                    backoff = _SHORTEST_LOOK_SECONDS
                except (ClientError, BrokerError, OSError, ValueError) as error:
                    self._note_error(str(error))
                    wait = backoff
                    backoff = min(2 * backoff, _LONGEST_BACKOFF_SECONDS)
                except Exception as error:
                    logger.exception("a bug: mirror %s looks at its source again", self.definition.name)
                    self.error = f"a bug, see the broker's log: {error!r}"
                    wait = backoff
                    backoff = min(2 * backoff, _LONGEST_BACKOFF_SECONDS)
                await asyncio.sleep(_SHORTEST_LOOK_SECONDS)
                try:
                    async with asyncio.timeout(max(0.0, wait - _SHORTEST_LOOK_SECONDS)):
                        await self._look_now.wait()
                except TimeoutError:
                    continue
        finally:
            await self._stop()

    async def _open(self) -> Source:
        """Make the client of the source. It connects when it is used. Raises ValueError for its patterns."""
        if (fault := pattern_fault(self.definition)) is not None:
            raise ValueError(fault)
        cluster = Cluster(await self._parts.client_config(self.definition))
        self._source = source = KafkaSource(cluster)
        if self.definition.groups:
            groups = SourceGroups(cluster, self.definition.groups)
            self._groups = GroupFollower(groups, LocalGroups(self._parts.group_offsets), self._end_of)
            name = f"mirror-{self.definition.name}-groups"
            self._following = self._loop.create_task(self._groups.run(), name=name)
        return source

    def _end_of(self, key: TopicPartition) -> int | None:
        found = self.partitions.get(key)
        return None if found is None else found.log.end

    async def _stop(self) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])
        await self._fetchers.stop()
        if self._source is not None:
            await self._source.close()

    def _note_error(self, error: str | None) -> None:
        if error is not None and error != self.error:
            logger.warning("mirror %s: %s", self.definition.name, error)
        elif error is None and self.error is not None:
            logger.info("mirror %s reaches its source again", self.definition.name)
        self.error = error

    @property
    def _image(self) -> MetadataImage:
        return self._parts.store.image

    async def _look(self, source: Source) -> None:
        """Bring topics and fetchers in line with the source. Raises ClientError, BrokerError."""
        named = named_topics(self.definition, self._image)
        metadata = await source.metadata(named)
        self._ensure_other_cluster(metadata)
        image = self._image
        found = discover(self.definition, metadata, image)
        problems = dict(found.problems)
        gone = await self._gone(source, found.missing, asked=named)
        # Twice: a broker of the source that has just started may not know all topics yet.
        await self._forget(image, [*found.replaced, *(each for each in gone if each in self._gone_before)])
        self._gone_before = frozenset(gone)
        await self._take(source, found, problems)
        await self._grow(found, problems)
        for topic, state in found.states.items():
            await self._set_state(topic, state)
        await self._raise_epochs(found.follow)
        now = self._loop.time()
        if self.definition.follow_configs and now >= self._configs_due:
            self._configs_due = now + CONFIGS_SECONDS
            await self._follow_configs(source, found.follow)
        for name in self._without_configs & found.follow.keys():
            problems.setdefault(name, _NO_CONFIGS)
        self.problems = problems
        self._assign(found.follow)
        self.has_looked = True

    def _ensure_other_cluster(self, metadata: SourceMetadata) -> None:
        """Raise ClientError for this cluster itself, and for a copy of its directories."""
        cluster_id = self._parts.store.cluster_id
        if metadata.cluster_id == cluster_id:
            raise ClientError(
                f"the source is this cluster itself, or was copied from its directories: both have the cluster id "
                f"{cluster_id}, so both would hand out the same producer ids"
            )

    async def _gone(self, source: Source, missing: list[str], *, asked: frozenset[str] | None) -> list[str]:
        """Return which of the topics that the source does not list are deleted there. Raises ClientError.

        A list of all topics leaves out those that this client may not describe. Asked by its name, such a topic is
        refused, and a deleted one does not exist.
        """
        if not missing or asked is not None:
            return missing
        refused = (await source.metadata(missing)).topics
        return [each for each in missing if each not in refused]

    async def _forget(self, image: MetadataImage, topics: list[str]) -> None:
        """Remove the records of topics that were deleted here and whose topics at the source are gone.

        A later topic of the name is copied.
        """
        if not topics:
            return
        source_ids = {each: image.mirrors.topics[each].source_id for each in topics}
        mirror = self.definition.name
        await self._parts.changes.change(lambda now: plan_forget_deleted(now, mirror, source_ids))
        logger.info(
            "mirror %s: the source's topics of those that were deleted here are gone: %s", mirror, ", ".join(topics)
        )

    async def _take(self, source: Source, found: Discovery, problems: dict[str, str]) -> None:
        """Create the topics that are new at the source, and follow them."""
        if not found.take:
            return
        configs = await source.topic_configs(list(found.take)) if self.definition.follow_configs else {}
        if self.definition.follow_configs:
            self._note_configs(found.take, configs)
        for name, topic in found.take.items():
            plan = partial(self._plan_take, name=name, topic=topic, configs=configs.get(name, {}))
            if await self._change_topic(name, plan, problems):
                found.follow[name] = topic
                logger.info(
                    "mirror %s copies topic %s, partitions=%d", self.definition.name, name, len(topic.partitions)
                )

    def _plan_take(
        self,
        image: MetadataImage,
        placement: Placement,
        *,
        name: str,
        topic: SourceTopic,
        configs: Mapping[str, str],
    ) -> Plan[CreatableTopicResult]:
        return plan_take_topic(
            image,
            self.definition.name,
            name,
            source_id=topic.topic_id,
            partitions=len(topic.partitions),
            configs=followed_configs(configs, image.topic_configs(name)),
            config=self._parts.config.broker,
            placement=placement,
        )

    async def _grow(self, found: Discovery, problems: dict[str, str]) -> None:
        for name, count in found.grow.items():

            def plan(
                image: MetadataImage, placement: Placement, name: str = name, count: int = count
            ) -> Plan[CreatePartitionsTopicResult]:
                return plan_grow_topic(image, name, count, placement=placement)

            await self._change_topic(name, plan, problems)

    async def _change_topic(self, name: str, plan: TopicPlan[R], problems: dict[str, str]) -> bool:
        """Carry out a plan for one topic; return whether it worked, else note why not. Raises BrokerError."""
        (result,) = await self._parts.changes.change_topics(plan)
        if result.error is ErrorCode.NONE:
            return True
        problems[name] = result.message or result.error.name
        return False

    async def _set_state(self, name: str, state: TopicMirrorState) -> None:
        mirrored = self._image.mirror_of(name)
        if mirrored is None:
            return
        changed = replace(mirrored, state=state)
        logger.warning("mirror %s: topic %s is %s", self.definition.name, name, state)
        await self._parts.changes.change(lambda image: plan_set_topic_mirror(image, name, changed))

    async def _raise_epochs(self, follow: Mapping[str, SourceTopic]) -> None:
        """Raise leader epochs before records of theirs are copied."""
        needed = {
            TopicPartition(name, number): epoch
            for name, epochs in needed_epochs(follow, self._image).items()
            for number, epoch in epochs.items()
        }
        if needed:
            await self._parts.changes.change(lambda image: plan_raise_leader_epochs(image, needed))

    async def _follow_configs(self, source: Source, follow: Mapping[str, SourceTopic]) -> None:
        """Give the copies the configs of their topics at the source."""
        if not follow:
            return
        answered = await source.topic_configs(list(follow))
        self._note_configs(follow, answered)
        for name, configs in answered.items():
            here = self._image.topic_configs(name)
            wanted = followed_configs(configs, here)
            if wanted != here and name in self._image.topics:
                logger.info("mirror %s: configs of topic %s follow the source: %s", self.definition.name, name, wanted)

                def plan(
                    image: MetadataImage, name: str = name, wanted: Mapping[str, str] = wanted
                ) -> Plan[CreatableTopicResult]:
                    return plan_follow_configs(image, name, wanted)

                await self._parts.changes.change(plan)

    def _note_configs(self, requested: Collection[str], answered: Mapping[str, object]) -> None:
        """Note of which topics the source tells no configs."""
        missing = set(requested) - answered.keys()
        for name in sorted(missing - self._without_configs):
            logger.warning("mirror %s: topic %s: %s", self.definition.name, name, _NO_CONFIGS)
        self._without_configs -= set(requested) - missing
        self._without_configs |= missing

    def _assign(self, follow: Mapping[str, SourceTopic]) -> None:
        """Hand each partition to the fetcher of its leader."""
        wanted: dict[TopicPartition, tuple[int, int]] = {}
        for name, topic in follow.items():
            for number, source in topic.partitions.items():
                wanted[TopicPartition(name, number)] = (source.leader, source.leader_epoch)
        for key in [each for each in self.partitions if each not in wanted]:
            self._fetchers.remove(key)
            del self.partitions[key]
        for key, (leader, epoch) in wanted.items():
            partition = self._mirrored(key, follow[key.topic])
            if partition is None:
                continue
            is_new_epoch = partition.leader_epoch != epoch
            partition.leader_epoch = epoch
            if self._fetchers.copies(key, leader) and not is_new_epoch:
                continue
            self._fetchers.remove(key)
            if leader >= 0:
                self._fetchers.add(partition, leader)
        self._fetchers.end_idle()

    def _mirrored(self, key: TopicPartition, topic: SourceTopic) -> MirroredPartition | None:
        """Return the partition to copy to; None if it is not served here."""
        served = self._parts.partitions.get(*key)
        known = self.partitions.get(key)
        if served is None or not isinstance(served.log, PartitionLog):
            self._fetchers.remove(key)
            self.partitions.pop(key, None)
            return None
        if known is not None and known.log.partition is served and known.topic_id == topic.topic_id:
            return known
        self._fetchers.remove(key)
        log = CopiedLog(served, served.log, self._parts.log_manager, keeps_cut=self.definition.keep_cut)
        partition = MirroredPartition(
            key, topic.topic_id, log, self._loop.time(), compares_batches=key.topic in self.definition.take_existing
        )
        if log.end > 0:
            # Whether it was complete later than that is not known.
            partition.caught_up_at = self._loop.time() - max(0, served.log.wall_ms() - log.modified_ms) / 1000
        elif self.definition.start != EARLIEST:
            partition.starts_at = self.definition.start
        self.partitions[key] = partition
        return partition

    def _make_fetcher(self, leader: int) -> LeaderFetcher:
        source = self._source
        assert source is not None, "its leaders are known"
        return LeaderFetcher(
            partial(source.node, leader),
            self._parts.executor,
            self._rate,
            on_lost=self._look_now.set,
            interval_seconds=_REQUEST_INTERVAL_SECONDS,
            copies_anew=True,
            follows_epochs=True,
        )

    def status(self) -> MirrorStatus:
        """Return the state of the mirror and of its partitions. Any thread may call it."""
        now = self._loop.time()
        errors = [*([self.error] if self.error else []), *self._fetchers.errors]
        if self._groups is not None and self._groups.error is not None:
            errors.append(f"groups: {self._groups.error}")
        return MirrorStatus(
            self.definition.name,
            MirrorState.RUNNING if self.has_looked else MirrorState.STARTING,
            "; ".join(errors) or None,
            tuple(each.status(now) for _, each in sorted(self.partitions.items(), key=itemgetter(0))),
            tuple(TopicProblem(topic, reason) for topic, reason in sorted(self.problems.items())),
        )
