"""ReplicaLogs: the logs of a standby follow the copied metadata: created, deleted, configured."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.broker.image_applier import RETRY_SECONDS
from barnabas.broker.metadata.directories.reconcile import create_log
from barnabas.broker.mirrors.copied_log import CopiedLog
from barnabas.broker.mirrors.mirrored_partition import MirroredPartition
from barnabas.broker.partitions.partition import Partition
from barnabas.protocol.errors import BrokerError
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.broker.mirrors.leader_fetcher import LeaderFetcher
    from barnabas.broker.probes import BrokerProbes
    from barnabas.broker.storage.log_manager import LogManager

logger = logging.getLogger(__name__)


class ReplicaLogs:
    """`change_logs` blocks; everything else runs in the event loop."""

    def __init__(
        self,
        log_manager: LogManager,
        live: LiveConfig,
        directory_ids: Mapping[Path, bytes],
        probes: BrokerProbes,
        loop: asyncio.AbstractEventLoop,
        *,
        compares_batches: bool,
    ) -> None:
        """`compares_batches`: the logs found at the start were another broker's."""
        self._log_manager = log_manager
        self._live = live
        self._directory_ids = directory_ids
        self._probes = probes
        self._loop = loop
        self._compares_batches = compares_batches
        self.partitions: dict[TopicPartition, MirroredPartition] = {}
        """All partitions that have a log here."""
        self.missing: dict[TopicPartition, str] = {}
        """Partitions whose log cannot be created, with the reason."""
        self._retry_at = 0.0
        """When the missing logs are tried again, by the loop's clock."""

    @property
    def retries(self) -> bool:
        """Whether missing logs are to be tried again now: every RETRY_SECONDS."""
        return bool(self.missing) and self._loop.time() >= self._retry_at

    def change_logs(self, before: MetadataImage, after: MetadataImage) -> None:
        """Delete, configure and create logs. Blocks; raises nothing: a log that cannot be created is `missing`.

        Missing logs are tried again when that is due, whatever has changed. The first that fails in a directory stands
        for the others there: on a full disk they need not all be tried.
        """
        gone = [name for name, topic in before.topics.items() if _topic_id(after, name) != topic.topic_id]
        self._log_manager.delete(
            TopicPartition(name, number) for name in gone for number in before.topics[name].partitions
        )
        if before.configs != after.configs:
            if self._live.apply(after):
                self._log_manager.update_broker_config(self._live.broker)
            else:
                for name in after.topics:
                    if before.topic_configs(name) != after.topic_configs(name):
                        self._log_manager.update_topic_config(name, self._live.log_config(name))
        # With a directory offline a missing log may be there: it is not created in another one.
        is_new = not self._log_manager.failures.offline
        incomplete = {key.topic for key in self.missing} if self.retries else set()
        refusals: dict[Sequence[bytes], str] = {}
        for name, topic in after.topics.items():
            if topic is before.topics.get(name) and name not in incomplete:
                continue
            for number, state in topic.partitions.items():
                key = TopicPartition(name, number)
                if self._log_manager.get(key) is not None:
                    continue
                try:
                    if state.directories not in refusals:
                        create_log(topic, key, self._log_manager, self._directory_ids, is_new=is_new)
                        continue
                except BrokerError as error:
                    refusals[state.directories] = error.message
                reason = refusals[state.directories]
                if key not in self.missing:
                    logger.error("the log of %s cannot be created, so it is not copied yet: %s", key, reason)
                self.missing[key] = reason
        if refusals:
            self._retry_at = self._loop.time() + RETRY_SECONDS

    def follow(self, image: MetadataImage, fetcher: LeaderFetcher) -> None:
        """Let `fetcher` copy the partitions of `image`, those with a log, and no others."""
        wanted: set[TopicPartition] = set()
        now = self._loop.time()
        for name, topic in image.topics.items():
            for number, state in topic.partitions.items():
                key = TopicPartition(name, number)
                log = self._log_manager.get(key)
                if log is None:
                    continue
                wanted.add(key)
                self.missing.pop(key, None)
                known = self.partitions.get(key)
                if known is not None and known.topic_id == topic.topic_id:
                    if known.leader_epoch != state.leader_epoch:
                        known.leader_epoch = state.leader_epoch
                        known.resume_at = 0.0  # it may wait because the active broker refused the old epoch
                    continue
                if known is not None:
                    fetcher.remove(key)
                probe = self._probes.topic(name)
                served = Partition(log, state.leader_epoch, topic.topic_id, probe, self._loop, mirror="standby")
                copied = CopiedLog(served, log, self._log_manager, keeps_cut=self._compares_batches)
                found = self.partitions[key] = MirroredPartition(
                    key, topic.topic_id, copied, now, compares_batches=self._compares_batches
                )
                found.leader_epoch = state.leader_epoch
                fetcher.add(found)
        for key in self.partitions.keys() - wanted:
            del self.partitions[key]
            fetcher.remove(key)
        self.missing = {key: reason for key, reason in self.missing.items() if image.partition(*key) is not None}

    @property
    def is_compared(self) -> bool:
        """Whether all partitions were compared with the active broker's."""
        if self.missing or self._log_manager.failures.offline:
            return False
        return all(each.source_offset is not None for each in self.partitions.values())

    def trust_epochs(self) -> bool:
        """Return whether every partition was compared with the active broker's; then leader epochs are trusted."""
        if not self.is_compared:
            return False
        self._compares_batches = False
        for each in self.partitions.values():
            each.trust_epochs()
        return True


def _topic_id(image: MetadataImage, name: str) -> bytes | None:
    topic = image.topics.get(name)
    return None if topic is None else topic.topic_id
