"""The one path by which a request changes metadata: plan, commit, then make it so.

    plan      a pure function from the image and the request to answers and records (broker.metadata)
    commit    the records are appended to the metadata log and flushed; the image is replaced
    apply     logs are made or deleted, configs handed down, the partition registry brought up to date

Changes run one after the other. Planning, committing and making directories block, so they run on a thread of their
own; the registry belongs to the event loop. A partition is out of the registry before its log goes, and in it only once
its directory is there. If making a directory fails after the commit, the topic exists without that log: the client is
told KAFKA_STORAGE_ERROR for that topic, and the next start makes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from barnabas.broker.metadata.configs import plan_alter_configs
from barnabas.broker.metadata.placement import Placement
from barnabas.broker.metadata.producer_ids import plan_producer_id_block
from barnabas.broker.metadata.topics import plan_create_partitions, plan_create_topics, plan_delete_topics
from barnabas.broker.storage.files.open_files import partitions_at_once
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.cluster.configs import AlterConfigsRequest, AlterConfigsResponse, AlterConfigsResult
from barnabas.protocol.messages.topics.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    NewTopic,
    TopicResult,
    TopicsResponse,
)
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.image_applier import ImageApplier
    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.broker.metadata.plan import Plan
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.partitions.creation_steps import PartitionSteps
    from barnabas.protocol.metadata.records import MetadataRecord

Result = TypeVar("Result", TopicResult, AlterConfigsResult, range)
T = TypeVar("T")


class Committer(Protocol):
    """Commits planned records: MetadataStore, or RefusingCommitter with read.only=true."""

    @property
    def failure(self) -> str | None:
        """Why nothing can be changed until the broker starts again, or None."""

    def commit(self, records: Sequence[MetadataRecord]) -> MetadataImage:
        """Append and sync `records`, all or none, and return the image with them. Raises BrokerError."""


class MetadataChanges:
    """Creates, grows and deletes topics, alters configs, takes blocks of producer ids."""

    def __init__(
        self,
        store: MetadataView,
        committer: Committer,
        config: LiveConfig,
        applier: ImageApplier,
        on_store_failed: Callable[[], None],
    ) -> None:
        """`on_store_failed` is called when nothing can be changed any more: what is on disk is not known."""
        self._store = store
        self._committer = committer
        self._config = config
        self._applier = applier
        self._on_store_failed = on_store_failed
        self._one_at_a_time = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "metadata-writer")

    async def create_topics(self, request: CreateTopicsRequest) -> TopicsResponse:
        """Answers per topic; what is answered without an error is there, durably."""
        return TopicsResponse(
            await self._change(
                lambda image: plan_create_topics(
                    image, request.topics, config=self._config.broker, placement=self._placement(image)
                ),
                commit=not request.validate_only,
            )
        )

    async def create_in_steps(self, topic: NewTopic, steps: PartitionSteps) -> TopicResult:
        """Create one topic whose logs are made one by one, as `steps` says; other changes come in between.

        What could not be made, or was not when the broker died, the next start makes.
        """
        (result,) = await self._change(
            lambda image: plan_create_topics(
                image, [topic], config=self._config.broker, placement=self._placement(image)
            ),
            commit=True,
            later=topic.name,
        )
        created = self._store.image.topics.get(topic.name)
        if result.error is ErrorCode.NONE and created is not None:

            async def make(number: int) -> None:
                async with self._one_at_a_time:
                    image = self._store.image
                    now = image.topics.get(topic.name)
                    if now is not None and now.topic_id == created.topic_id:  # else it was deleted meanwhile
                        await self._applier.make(image, TopicPartition(topic.name, number), self._blocking)

            await steps.run(created.partitions, make)
        return result

    async def delete_topics(self, request: DeleteTopicsRequest) -> TopicsResponse:
        """Answers per topic."""
        return TopicsResponse(
            await self._change(
                lambda image: plan_delete_topics(
                    image, request.names, config=self._config.broker, references=request.references
                ),
                commit=True,
            )
        )

    async def create_partitions(self, request: CreatePartitionsRequest) -> TopicsResponse:
        """Answers per topic."""
        return TopicsResponse(
            await self._change(
                lambda image: plan_create_partitions(image, request.topics, placement=self._placement(image)),
                commit=not request.validate_only,
            )
        )

    async def alter_configs(self, request: AlterConfigsRequest) -> AlterConfigsResponse:
        """Answers per resource."""
        return AlterConfigsResponse(
            await self._change(
                lambda image: plan_alter_configs(
                    image,
                    request.resources,
                    config=self._config.static,
                    node_id=self._store.node_id,
                    replace=request.replace,
                ),
                commit=not request.validate_only,
            )
        )

    async def take_producer_id_block(self) -> range:
        """The next producer ids, which nobody else will get. Raises BrokerError KAFKA_STORAGE_ERROR."""
        (block,) = await self._change(
            lambda image: plan_producer_id_block(image, node_id=self._store.node_id), commit=True
        )
        return block

    async def close(self) -> None:
        """Wait for the change at hand; later ones fail."""
        async with self._one_at_a_time:
            self._thread.shutdown(wait=True)

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
        async with self._one_at_a_time:
            before = self._store.image
            plan = await self._blocking(make_plan, before)
            if not commit or not plan.records:
                return plan.results
            try:
                after = await self._blocking(self._committer.commit, plan.records)
            except BrokerError:
                if self._committer.failure is not None:
                    self._on_store_failed()
                raise
            failed = await self._applier.apply(before, after, self._blocking, later=later)
            _tell_failures(plan.results, failed)
            return plan.results

    async def _blocking(self, work: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)


def _tell_failures(results: Sequence[object], failed: Mapping[str, BrokerError]) -> None:
    """Topics that are in the metadata, but not all of whose logs could be made."""
    for result in results:
        if isinstance(result, TopicResult) and result.name in failed:
            error = failed[result.name]
            result.error, result.message = error.code, error.message
