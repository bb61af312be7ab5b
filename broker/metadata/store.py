"""MetadataStore: a running broker's metadata, and open_metadata, which opens it from locked log directories.

1. examine   read meta.properties, bootstrap.checkpoint, the metadata log, its snapshots and the partition directories.
             Every refusal comes from this step: opening the log already writes (it recovers the tail), so nothing may
             be refused after it
2. write     write bootstrap.checkpoint and meta.properties if they are missing or outdated; open the log, which cuts
             off a torn tail; append and sync the records planned by `opening`
3. serve     `image`, `commit`, and `reconcile` once the logs are loaded
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from barnabas.broker.metadata.directories.assignments import plan_assignment, plan_found_assignments
from barnabas.broker.metadata.directories.examine import examine, partitions_by_topic
from barnabas.broker.metadata.directories.meta_properties import NodeIdentity, write_identity
from barnabas.broker.metadata.directories.opening import Opening, abort_record, plan_opening, sole_voter
from barnabas.broker.metadata.directories.reconcile import is_stray, reconcile_logs
from barnabas.broker.metadata.directories.registrations import registered_broker_epoch
from barnabas.broker.metadata.directories.report import BARNABAS, DirectoryReport
from barnabas.broker.metadata.directories.security import enforced_security, security_warnings
from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.image_builder import ImageBuilder
from barnabas.broker.metadata.log import bootstrap_checkpoint
from barnabas.broker.metadata.log.batches import encode_change, encode_control_batch
from barnabas.broker.metadata.log.log_replay import ReplayedLog
from barnabas.broker.metadata.log.metadata_log import MetadataLog, open_metadata_log
from barnabas.broker.metadata.log.snapshot_file import RaftState
from barnabas.broker.metadata.log.snapshotter import Snapshotter
from barnabas.broker.metadata.log.writer import MetadataWriter
from barnabas.broker.metadata.plan import Plan
from barnabas.broker.metadata.view import ImageListener
from barnabas.broker.printable import printable
from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.files.partition_metadata_file import PARTITION_METADATA_FILE, write_partition_metadata
from barnabas.config import complaints
from barnabas.protocol.errors import BrokerError
from barnabas.protocol.metadata.control import LeaderChange, Voter
from barnabas.protocol.metadata.records import GROUP_RESOURCE, MetadataRecord

if TYPE_CHECKING:
    from barnabas.broker.storage.directories.loading import FoundPartition
    from barnabas.broker.storage.log.partition_log import PartitionLog
    from barnabas.broker.storage.log_manager import LogManager
    from barnabas.broker.storage.services.clock import Clock
    from barnabas.broker.storage.services.scheduler import Scheduler
    from barnabas.config import BrokerConfig

Result = TypeVar("Result")

logger = logging.getLogger(__name__)


class MetadataStore:
    """The metadata of a running broker. Any thread may read `image`; changes are synchronous. See MetadataView."""

    def __init__(
        self,
        identity: NodeIdentity,
        log: MetadataLog,
        writer: MetadataWriter,
        snapshotter: Snapshotter,
        voter: Voter,
        warnings: Sequence[str],
    ) -> None:
        self.voter = voter
        self.node_id = identity.node_id
        self.cluster_id = identity.cluster_id
        self.directory_ids: Mapping[Path, bytes] = identity.directory_ids
        self.warnings = tuple(warnings)
        """Sentences about the opened directories, already logged."""
        self._log = log
        self._writer = writer
        self._snapshotter = snapshotter

    @property
    def image(self) -> MetadataImage:
        """The current state."""
        return self._writer.image

    @property
    def leader_epoch(self) -> int:
        """The leader epoch of the metadata log."""
        return self._writer.leader_epoch

    @property
    def broker_epoch(self) -> int:
        """The node's broker epoch at Kafka's controller, for the clean-shutdown marker; -1 if Kafka never ran."""
        return registered_broker_epoch(self.image, self.node_id)

    @property
    def failure(self) -> str | None:
        """Why nothing can be changed any more, or None. The broker must stop if it is set."""
        return self._writer.failure

    @property
    def log(self) -> MetadataLog:
        """The log itself, for a standby that copies it."""
        return self._log

    def add_listener(self, listener: ImageListener) -> None:
        """Call `listener(before, after)` after each change, on the thread that changed the image."""
        self._writer.add_listener(listener)

    def commit(self, records: Sequence[MetadataRecord]) -> MetadataImage:
        """Append and sync `records`, all or none; return the image with them. Raises BrokerError (56)."""
        return self._writer.commit(records)

    def change(self, plan: Callable[[MetadataImage], Plan[Result]]) -> list[Result]:
        """Commit the plan for the current image; return its results. Raises BrokerError (56)."""
        return self._writer.change(plan)

    def is_stray(self, found: FoundPartition) -> bool:
        """Return whether the metadata lacks the partition. For `LogManager.load_logs`."""
        return is_stray(self.image, found.topic_partition, found.topic_id)

    def reconcile(self, log_manager: LogManager) -> None:
        """Create missing logs and set unknown ones aside. Called at start, once all logs are loaded."""
        reconcile_logs(self.image, log_manager, self.directory_ids)
        found = {
            log.topic_partition: self.directory_ids[log.log_dir]
            for log in log_manager.logs()
            if log.log_dir in self.directory_ids
        }
        for topic_partition in self.change(lambda image: plan_found_assignments(image, found)):
            logger.info("recorded the log directory of %s in the metadata", topic_partition)

    def assign(self, log: PartitionLog, log_dir: Path) -> None:
        """Record durably that a partition is in `log_dir`. For `LogManager.load_logs`.

        Raises BrokerError, also if the partition is deleted.
        """
        directory_id = self.directory_ids[log_dir]
        self.change(lambda image: plan_assignment(image, log.topic_partition, log.topic_id, directory_id))

    def pause(self, reason: str) -> None:
        """Refuse changes from now on with NOT_CONTROLLER; one that is running is finished first."""
        self._writer.pause(reason)

    def resume(self) -> None:
        """Accept changes again."""
        self._writer.resume()

    def start_snapshots(self, scheduler: Scheduler) -> None:
        """Write snapshots when they are due, and trim the log. Called once the broker serves."""
        self._snapshotter.start(scheduler)

    def take_snapshot(self) -> bool:
        """Write a snapshot of the image. Return False if nothing is newer than the last one, or after a logged error.

        For the tools: a serving broker takes its snapshots itself.
        """
        return self._snapshotter.take()

    def close(self) -> None:
        """Close the metadata log, unless the log manager has closed it. Raises StorageError."""
        self._log.close()


def open_metadata(
    config: BrokerConfig, log_manager: LogManager, clock: Clock, *, takes_over: bool = False
) -> MetadataStore:
    """Open the metadata in the directories that `log_manager` has opened and locked.

    `takes_over`: they are a standby's copy, so every leader epoch is raised.
    Raises MetadataError with a sentence for the operator.
    """
    try:
        return _open(config, log_manager, clock, takes_over=takes_over)
    except (OSError, StorageError, BrokerError) as error:
        raise MetadataError(f"the metadata in {config.metadata_log_dir} cannot be opened: {error}") from error


def _open(config: BrokerConfig, log_manager: LogManager, clock: Clock, *, takes_over: bool) -> MetadataStore:
    log_dir = config.metadata_log_dir
    ignored, enforced = config.get_bool("ignore.security"), enforced_security(config)
    report = examine(
        log_manager.live_directories,
        metadata_log_dir=log_dir,
        node_id=config.node_id,
        ignore_security=ignored,
        enforced=enforced,
        adopt_topics=config.get_bool("adopt.topics"),
        are_all=not log_manager.failures.offline,
    )
    identity, replayed = _openable(report)
    found = {} if replayed.exists else partitions_by_topic(report.directories)
    opening = plan_opening(
        replayed,
        identity=identity,
        bootstrap=report.bootstrap,
        found=found,
        was_clean=report.was_clean,
        takes_over=takes_over,
        config=config,
    )

    if not (log_dir / bootstrap_checkpoint.FILE_NAME).exists():
        bootstrap_checkpoint.write_bootstrap_checkpoint(log_dir, opening.features, timestamp_ms=clock.wall_ms())
    write_identity(identity, report.outdated)
    for directory, topic_id in report.torn_topic_ids.items():
        write_partition_metadata(directory, topic_id)
        logger.warning("%s was cut off: it is written again", directory / PARTITION_METADATA_FILE)
    log = open_metadata_log(log_manager, replayed, config.log_config)
    now_ms, size_before = clock.wall_ms(), log.size_bytes
    image = _append_opening(log, replayed, opening, identity, log_dir, now_ms)
    warnings = [
        *_first_uses(report),
        *(_adoption_left_on(config) if replayed.exists else ()),
        *opening.warnings,
        *security_warnings(report.security, enforced, ignored=ignored),
        *_complaints(image),
    ]
    for warning in warnings:
        logger.warning("%s", warning)
    _log_opened(identity, image, opening, replayed)
    writer = MetadataWriter(
        log,
        image,
        leader_epoch=opening.leader_epoch,
        clock=clock,
        last_timestamp_ms=now_ms if image.end_offset > replayed.image.end_offset else replayed.last_timestamp,
    )
    snapshotter = Snapshotter(
        log,
        writer,
        raft=RaftState(replayed.kraft_version, replayed.voters),
        unsnapped_bytes=replayed.unsnapped_bytes + log.size_bytes - size_before,
        config=config,
        clock=clock,
    )
    return MetadataStore(identity, log, writer, snapshotter, sole_voter(identity, replayed, log_dir), warnings)


def _openable(report: DirectoryReport) -> tuple[NodeIdentity, ReplayedLog]:
    """Return identity and log. Raises MetadataError with all problems and remedies in one line."""
    problems = report.stopping(BARNABAS)
    if problems:
        raise MetadataError("; also: ".join(f"{problem.sentence}: {problem.remedy}" for problem in problems))
    assert report.identity is not None, "a contradictory identity is reported as a problem"
    assert report.replayed is not None, "an unreadable log is reported as a problem"
    return report.identity, report.replayed


def _append_opening(
    log: MetadataLog,
    replayed: ReplayedLog,
    opening: Opening,
    identity: NodeIdentity,
    log_dir: Path,
    now_ms: int,
) -> MetadataImage:
    """Append and sync the records planned by `opening` in one append; return the image with them."""
    node_id, epoch = identity.node_id, opening.leader_epoch
    builder = ImageBuilder(replayed.image)
    data, offset = bytearray(), log.end_offset
    if opening.is_new_epoch:
        us = (sole_voter(identity, replayed, log_dir),)
        change = LeaderChange(node_id, us, us, version=min(replayed.kraft_version, 1))
        data += encode_control_batch([change], base_offset=offset, leader_epoch=epoch, timestamp_ms=now_ms)
        offset += 1
    changes = ([abort_record()] if opening.aborts else [], opening.records)
    for records in changes:
        if records:
            batches, offset = encode_change(
                records, level=opening.level, base_offset=offset, leader_epoch=epoch, timestamp_ms=now_ms
            )
            data += batches
    for record in opening.records:
        builder.apply(record)
    builder.move_to(offset)
    if data:
        log.append(bytes(data), epoch)
        log.sync()
    return builder.build()


def _first_uses(report: DirectoryReport) -> list[str]:
    """Return sentences about new log directories in which somebody has other files."""
    return [
        f"{each.path} becomes a log directory, and holds other files, {each.strangers[0]} among them: they are left "
        "alone, and log.dirs may name an empty directory instead"
        for each in report.directories
        if each.strangers
    ]


def _adoption_left_on(config: BrokerConfig) -> Iterator[str]:
    if config.get_bool("adopt.topics"):
        yield (
            f"{config.setting('adopt.topics')} has no effect where a metadata log is: remove it, because a start "
            "without the metadata log would go on without its configs, ACLs and quotas"
        )


def _complaints(image: MetadataImage) -> list[str]:
    """Return sentences about stored configs without effect, which another program set under other rules."""
    of_topics = [
        f"topic {name}: {sentence}" for name in image.topics for sentence in complaints(image.topic_configs(name))
    ]
    return [*of_topics, *_group_problems(image), *image.mirrors.complaints()]


def _group_problems(image: MetadataImage) -> list[str]:
    groups = [name for kind, name in image.configs if kind == GROUP_RESOURCE]
    if not groups:
        return []
    from barnabas.config.group_configs import group_problems  # late: most starts have no such configs

    return [
        f"group {printable(name)}: {sentence}"
        for name in groups
        for sentence in group_problems(image.group_configs(name))
    ]


def _log_opened(identity: NodeIdentity, image: MetadataImage, opening: Opening, replayed: ReplayedLog) -> None:
    logger.info(
        "metadata opened, node_id=%d cluster_id=%s topics=%d partitions=%d level=%d epoch=%d end_offset=%d%s",
        identity.node_id,
        identity.cluster_id,
        len(image.topics),
        image.partition_count(),
        opening.level,
        opening.leader_epoch,
        image.end_offset,
        ", led by Apache Kafka before" if replayed.led_by_kafka else "",
    )
