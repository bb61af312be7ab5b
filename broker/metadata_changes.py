"""The one path by which a request changes metadata: plan, commit, apply.

    plan      a pure function from the image and the request to responses and records (broker.metadata)
    commit    the records are appended to the metadata log and flushed; the image is replaced
    apply     logs are created or deleted, configs passed on, the partition registry updated
    wait      with standby.min.acks=1 the answer waits for a standby that is in time

Changes run one at a time. Planning, committing and creating directories block, so they run on a thread of their own;
the registry belongs to the event loop. A partition leaves the registry before its log is deleted, and enters it only
once its directory exists. If creating a directory fails after the commit, the topic exists without that log: it is
answered KAFKA_STORAGE_ERROR, and the log is tried again every RETRY_SECONDS until it exists.

The plans are imported when they are first needed, on the thread that runs them.

The image names a new topic before its logs exist: a caller that creates a topic and writes to it must wait for the
creation, not for the name.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from barnabas.broker.image_applier import RETRY_SECONDS, report_failed
from barnabas.broker.metadata.placement import Placement
from barnabas.broker.metadata.producer_ids import plan_producer_id_block
from barnabas.broker.metadata.topic_quota import TakeQuota, take_freely
from barnabas.broker.storage.files.open_files import partitions_at_once
from barnabas.config import ensure_reconfigurable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from barnabas.broker.image_applier import ImageApplier
    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.broker.metadata.plan import Plan
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.partitions.creation_steps import PartitionSteps
    from barnabas.protocol.messages.cluster.configs import AlterConfigsResult, ChangedResource
    from barnabas.protocol.messages.cluster.update_features import FeatureUpdateResult, UpdateFeaturesRequest
    from barnabas.protocol.messages.topics.topics import (
        CreatableTopicResult,
        CreatePartitionsRequest,
        CreatePartitionsTopicResult,
        CreateTopicsRequest,
        DeletableTopicResult,
        NewTopic,
        TopicReference,
    )
    from barnabas.protocol.metadata.records import MetadataRecord

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
T = TypeVar("T")


class Committer(Protocol):
    """Commits planned records: MetadataStore, or RefusingCommitter with read.only=true."""

    @property
    def failure(self) -> str | None:
        """Why nothing can be changed until the broker starts again, or None."""

    def commit(self, records: Sequence[MetadataRecord]) -> MetadataImage:
        """Append and sync `records`, all or none, and return the image with them. Raises BrokerError."""


class MetadataChanges:
    """Creates, grows and deletes topics, alters configs and features, takes blocks of producer ids."""

    def __init__(
        self,
        store: MetadataView,
        committer: Committer,
        config: LiveConfig,
        applier: ImageApplier,
        on_store_failed: Callable[[], None],
    ) -> None:
        """`on_store_failed` is called when a failed write leaves the metadata log in an unknown state."""
        self._store = store
        self._committer = committer
        self._config = config
        self._applier = applier
        self._on_store_failed = on_store_failed
        self._one_at_a_time = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "metadata-writer")
        self._retries: asyncio.Task[None] | None = None

    async def create_topics(
        self, request: CreateTopicsRequest, take_quota: TakeQuota = take_freely
    ) -> list[CreatableTopicResult]:
        """Create topics; one result each. A topic without an error exists durably.

        `take_quota` is called on a thread, here and below.
        """

        def plan(image: MetadataImage) -> Plan[CreatableTopicResult]:
            from barnabas.broker.metadata.topics import plan_create_topics

            return plan_create_topics(
                image,
                request.topics,
                config=self._config.broker,
                placement=self._placement(image),
                take_quota=take_quota,
            )

        return await self._change(plan, commit=not request.validate_only)

    async def create_in_steps(self, topic: NewTopic, steps: PartitionSteps) -> CreatableTopicResult:
        """Create one topic whose logs are created one by one, in the order of `steps`, between other changes.

        The next start creates the logs that a crash prevented; those that failed are tried again until they exist.
        """

        def plan(image: MetadataImage) -> Plan[CreatableTopicResult]:
            from barnabas.broker.metadata.topics import plan_create_topics

            return plan_create_topics(image, [topic], config=self._config.broker, placement=self._placement(image))

        (result,) = await self._change(plan, commit=True, later=topic.name)
        created = self._store.image.topics.get(topic.name)
        if result.error is ErrorCode.NONE and created is not None:
            failed: dict[TopicPartition, BrokerError] = {}

            async def make(number: int) -> bool:
                async with self._one_at_a_time:
                    image = self._store.image
                    now = image.topics.get(topic.name)
                    if now is None or now.topic_id != created.topic_id:  # it was deleted meanwhile
                        return False
                    place = TopicPartition(topic.name, number)
                    failed.update(await self._applier.create_one(image, place, self._blocking))
                    return place not in failed

            await steps.run(created.partitions, make)
            report_failed(failed)
        return result

    async def delete_topics(
        self, asked: Sequence[TopicReference], take_quota: TakeQuota = take_freely
    ) -> list[DeletableTopicResult]:
        """Delete topics; one result each."""

        def plan(image: MetadataImage) -> Plan[DeletableTopicResult]:
            from barnabas.broker.metadata.topics import plan_delete_topics

            return plan_delete_topics(image, asked, config=self._config.broker, take_quota=take_quota)

        return await self._change(plan, commit=True)

    async def create_partitions(
        self, request: CreatePartitionsRequest, take_quota: TakeQuota = take_freely
    ) -> list[CreatePartitionsTopicResult]:
        """Add partitions to topics; one result each."""

        def plan(image: MetadataImage) -> Plan[CreatePartitionsTopicResult]:
            from barnabas.broker.metadata.topics import plan_create_partitions

            return plan_create_partitions(
                image, request.topics, placement=self._placement(image), take_quota=take_quota
            )

        return await self._change(plan, commit=not request.validate_only)

    async def alter_configs(
        self, resources: Sequence[ChangedResource], *, replace: bool, validate_only: bool, is_trusted: bool = True
    ) -> list[AlterConfigsResult]:
        """Change configs; one result per resource.

        `is_trusted` False: whether a running broker can apply them is not looked at, which reads the files that they
        name, derives keys, and takes as long as the client likes.
        """

        def plan(image: MetadataImage) -> Plan[AlterConfigsResult]:
            from barnabas.broker.metadata.configs import plan_alter_configs

            return plan_alter_configs(
                image,
                resources,
                config=self._config.static,
                node_id=self._store.node_id,
                replace=replace,
                ensure_applicable=self._config.ensure_applicable if is_trusted else ensure_reconfigurable,
            )

        return await self._change(plan, commit=is_trusted and not validate_only)

    async def update_features(
        self, request: UpdateFeaturesRequest, *, has_consumer_groups: bool
    ) -> list[FeatureUpdateResult]:
        """Change levels of features, all or none; one result each. Raises BrokerError."""

        def plan(image: MetadataImage) -> Plan[FeatureUpdateResult]:
            from barnabas.broker.metadata.features import plan_update_features

            return plan_update_features(
                image,
                request.updates,
                node_id=self._store.node_id,
                kraft_version=int(self._store.voter.directory_id != ZERO_UUID),
                has_consumer_groups=has_consumer_groups,
            )

        return await self._change(plan, commit=not request.validate_only)

    async def take_producer_id_block(self) -> range:
        """Reserve and return the next block of producer ids. Raises BrokerError KAFKA_STORAGE_ERROR."""
        (block,) = await self._change(
            lambda image: plan_producer_id_block(image, node_id=self._store.node_id), commit=True
        )
        return block

    async def change(self, make_plan: Callable[[MetadataImage], Plan[Result]], *, commit: bool = True) -> list[Result]:
        """Carry out a plan that concerns no log: ACLs, users, quotas, tokens. Return its results. Raises BrokerError.

        `make_plan` runs on a thread. Once this returns, the records are durable and the authorizer and the quotas have
        the new image. With `commit` False nothing changes.
        """
        return await self._change(make_plan, commit=commit)

    async def change_topics(self, make_plan: Callable[[MetadataImage, Placement], Plan[Result]]) -> list[Result]:
        """Carry out a mirror's plan, which creates or grows topics; one result each. Raises BrokerError.

        `make_plan` runs on a thread.
        """
        return await self._change(lambda image: make_plan(image, self._placement(image)), commit=True)

    def start(self) -> None:
        """Begin to create the logs that could not be created, as a rule because the disk was full; until `close`."""
        self._retries = asyncio.get_running_loop().create_task(self._create_missing_logs())

    async def close(self) -> None:
        """Wait for the current change; later ones fail."""
        if self._retries is not None:
            self._retries.cancel()
        async with self._one_at_a_time:
            self._thread.shutdown(wait=True)

    async def _create_missing_logs(self) -> None:
        while True:
            await asyncio.sleep(RETRY_SECONDS)
            goes_on = self._applier.lacks_logs
            while goes_on:
                async with self._one_at_a_time:
                    try:
                        goes_on = await _to_the_end(self._applier.create_missing(self._store.image, self._blocking))
                    except Exception:  # the next attempt may succeed
                        logger.exception("a bug in the creation of missing logs")
                        goes_on = False

    def _placement(self, image: MetadataImage) -> Placement:
        return Placement(
            self._store.node_id,
            self._applier.online_directory_ids(),
            image,
            partitions_max=partitions_at_once(),
        )

    async def _change(
        self,
        make_plan: Callable[[MetadataImage], Plan[Result]],
        *,
        commit: bool,
        later: str | None = None,
    ) -> list[Result]:
        results, end_offset = await self._commit(make_plan, commit=commit, later=later)
        if end_offset is not None:
            await self._applier.replication.metadata_replicated(end_offset)
        return results

    async def _commit(
        self, make_plan: Callable[[MetadataImage], Plan[Result]], *, commit: bool, later: str | None
    ) -> tuple[list[Result], int | None]:
        """Plan, commit and apply; return the results and the new end of the metadata, None if nothing has changed."""
        async with self._one_at_a_time:
            before = self._store.image
            plan = await self._blocking(make_plan, before)
            if not commit or not plan.records:
                return plan.results, None
            after, failed = await _to_the_end(self._commit_and_apply(before, plan, later))
            if failed:
                _set_failures(plan.results, failed)
            return plan.results, after.end_offset

    async def _commit_and_apply(
        self, before: MetadataImage, plan: Plan[Any], later: str | None
    ) -> tuple[MetadataImage, Mapping[str, BrokerError]]:
        try:
            after = await self._blocking(self._committer.commit, plan.records)
        except BrokerError:
            if self._committer.failure is not None:
                self._on_store_failed()
            raise
        return after, await self._applier.apply(before, after, self._blocking, later=later)

    async def _blocking(self, work: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)


async def _to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Wait for `work` even if the caller is cancelled meanwhile: a committed change that is not applied stays so."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        if not task.cancelled() and (error := task.exception()) is not None:
            is_expected = isinstance(error, BrokerError)
            logger.error(
                "a change of the metadata has failed, and nobody waits for its answer any more: %s",
                error,
                exc_info=None if is_expected else error,
            )
        raise


def _set_failures(results: Sequence[object], failed: Mapping[str, BrokerError]) -> None:
    """Set the error of topics that exist in the metadata without all of their logs."""
    from barnabas.protocol.messages.topics.topics import CreatableTopicResult, CreatePartitionsTopicResult

    for result in results:
        if isinstance(result, CreatableTopicResult | CreatePartitionsTopicResult) and result.name in failed:
            error = failed[result.name]
            result.error, result.message = error.code, error.message
