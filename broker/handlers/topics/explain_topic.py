"""explain_topic (10004): when retention deletes a topic's segments; a property with all of its layers.

Needs DESCRIBE on the topic, with `setting` DESCRIBE_CONFIGS (TOPIC_AUTHORIZATION_FAILED). UNKNOWN_TOPIC_OR_PARTITION:
the topic or the partition is unknown, or no log of it can be read. INVALID_CONFIG: no property has this name. Segments
are looked at on a thread.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from barnabas.broker.handlers.authorization import ensure_allowed
from barnabas.broker.printable import printable
from barnabas.broker.storage.cleaning.cleaner_facts import CleanerFacts, facts_without_cleaner
from barnabas.broker.storage.explanation.topic_explanation import (
    deciding_settings,
    explain_partitions,
    setting_layers,
)
from barnabas.broker.storage.files.errors import StorageError
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.resources import Operation, ResourceType
from barnabas.protocol.messages.topics.explain_topic import (
    ExplainedCopy,
    ExplainedPartition,
    ExplainTopicRequest,
    ExplainTopicResponse,
)

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.metadata.store import MetadataStore
    from barnabas.broker.network.session import Session
    from barnabas.broker.partitions.registry import PartitionRegistry
    from barnabas.broker.probes import ApiProbe
    from barnabas.broker.storage.log.readable_log import ReadableLog
    from barnabas.broker.storage.served_logs import ServedLogs
    from barnabas.broker.storage.services.clock import Clock


class ExplainTopicHandler:
    """Serves explain_topic."""

    def __init__(
        self,
        store: MetadataStore,
        partitions: PartitionRegistry,
        log_manager: ServedLogs[ReadableLog],
        config: LiveConfig,
        blocking_io: Executor,
        clock: Clock,
        probe: ApiProbe,
    ) -> None:
        self._store = store
        self._partitions = partitions
        self._log_manager = log_manager
        self._config = config
        self._blocking_io = blocking_io
        self._clock = clock
        self._probe = probe

    async def __call__(self, session: Session, request: ExplainTopicRequest) -> ExplainTopicResponse:
        """Answer one request as the module docstring specifies."""
        try:
            return await self._explain(session, request)
        except BrokerError as error:
            self._probe.count_error(error.code.name.lower())
            return ExplainTopicResponse(error=error.code, message=error.message)

    async def _explain(self, session: Session, request: ExplainTopicRequest) -> ExplainTopicResponse:
        topic = request.topic
        operation = Operation.DESCRIBE if request.setting is None else Operation.DESCRIBE_CONFIGS
        ensure_allowed(session, operation, ResourceType.TOPIC, topic, ApiKey.EXPLAIN_TOPIC)
        image = self._store.image
        known = image.topics.get(topic)
        if known is None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {printable(topic)}")
        config, overrides, now_ms = self._config.broker, image.topic_configs(topic), self._clock.wall_ms()
        if request.setting is not None:
            found = setting_layers(config, overrides, request.setting)
            if found is None:
                raise BrokerError(
                    ErrorCode.INVALID_CONFIG,
                    f"topics have no property {printable(request.setting)}: barnabas config list --scope topic has all",
                )
            return ExplainTopicResponse(now_ms=now_ms, settings=found[0], layers=found[1])
        numbers = [each for each in known.partitions if request.partition in (None, each)]
        served = [self._partitions.get(topic, each) for each in numbers]
        logs = [each.log for each in served if each is not None]
        loop = asyncio.get_running_loop()
        explained = await loop.run_in_executor(self._blocking_io, self._read, logs, now_ms)
        if not explained:
            if logs:
                what = topic if request.partition is None else f"{topic}-{request.partition}"
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no log of {printable(what)} can be read here")
            raise self._partitions.refusal(topic, numbers[0] if request.partition is None else request.partition)
        return ExplainTopicResponse(now_ms=now_ms, settings=deciding_settings(config, overrides), partitions=explained)

    def _read(self, logs: list[ReadableLog], now_ms: int) -> list[ExplainedPartition]:
        found = []
        for log in logs:
            try:
                found += explain_partitions(
                    [log], self._config.broker, self._cleaner_facts, now_ms, copy_of=self._copy_of
                )
            except (OSError, StorageError, BrokerError):  # its directory has just failed, or it was deleted
                continue
        return sorted(found, key=lambda each: each.partition)

    def _copy_of(self, log: ReadableLog) -> ExplainedCopy | None:
        moves = self._log_manager.moves
        copy = None if moves is None else moves.copy_of(log)
        return None if copy is None else ExplainedCopy(str(copy.log_dir), copy.size_bytes)

    def _cleaner_facts(self, log: ReadableLog) -> CleanerFacts:
        cleaner = self._log_manager.cleaner
        return facts_without_cleaner(log, is_enabled=False) if cleaner is None else cleaner.facts(log)
