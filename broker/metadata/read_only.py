"""The metadata of a broker with read.only=true: the metadata log combined with the partitions found on the disks.

The image exists in memory only, so it describes what can be served from these disks:

    partition found on disk       led by this node, its only in-sync replica, whatever the log records
    partition missing on disk     kept without a leader: clients see its number and wait for it
    topic missing in the log      (or the log is missing or unreadable) created from its partition directories, with
                                  the configs that adopt.topics gives

So one disk of a dead cluster can be read, and a directory with damaged metadata. Every change is refused with
POLICY_VIOLATION (44).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from barnabas.broker.metadata.directories.adoption import PartitionDirectories, adopted_configs
from barnabas.broker.metadata.directories.examine import examine, partitions_by_topic
from barnabas.broker.metadata.directories.meta_properties import NodeIdentity
from barnabas.broker.metadata.directories.opening import sole_voter
from barnabas.broker.metadata.directories.reconcile import is_stray
from barnabas.broker.metadata.directories.report import BARNABAS, BARNABAS_READ_ONLY
from barnabas.broker.metadata.directories.security import enforced_security, security_warnings
from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.metadata.image import MetadataImage, TopicImage, topic_scope
from barnabas.broker.metadata.view import ImageListener
from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.files.partition_metadata_file import read_partition_metadata
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.metadata.control import Voter
from barnabas.protocol.metadata.partition_state import NO_LEADER, PartitionState
from barnabas.protocol.metadata.records import MetadataRecord
from barnabas.protocol.uuids import random_uuid, uuid_text

if TYPE_CHECKING:
    from barnabas.broker.storage.directories.loading import FoundPartition
    from barnabas.config import BrokerConfig

logger = logging.getLogger(__name__)


class ReadOnlyStore:
    """The metadata of a broker that only reads: an image that never changes."""

    def __init__(
        self, identity: NodeIdentity, image: MetadataImage, voter: Voter, leader_epoch: int, warnings: Sequence[str]
    ) -> None:
        self.image = image
        self.voter = voter
        self.leader_epoch = leader_epoch
        """The last one of the metadata log; 0 without a log."""
        self.node_id = identity.node_id
        self.cluster_id = identity.cluster_id
        self.directory_ids = identity.directory_ids
        self.warnings = tuple(warnings)
        """Sentences about what was found, already logged."""

    def add_listener(self, listener: ImageListener) -> None:
        """Accept a listener. It is never called, because the image never changes."""

    def is_stray(self, found: FoundPartition) -> bool:
        """Return whether the image has no such partition."""
        return is_stray(self.image, found.topic_partition, found.topic_id)


class RefusingCommitter:
    """The committer of a broker that only reads: a request that would change metadata is answered an error."""

    failure = None

    def commit(self, records: Sequence[MetadataRecord]) -> NoReturn:
        """Raise BrokerError POLICY_VIOLATION."""
        message = "nothing is changed: this broker only reads (read.only=true)"
        raise BrokerError(ErrorCode.POLICY_VIOLATION, message)


def read_metadata(config: BrokerConfig) -> ReadOnlyStore:
    """Read the metadata of the directories of log.dirs, which need not be opened or locked. Raises MetadataError."""
    try:
        return _read(config)
    except (OSError, StorageError) as error:
        raise MetadataError(f"the directories of log.dirs cannot be read: {error}") from error


def _read(config: BrokerConfig) -> ReadOnlyStore:
    ignored, enforced = config.get_bool("ignore.security"), enforced_security(config)
    report = examine(
        config.log_dirs,
        metadata_log_dir=config.metadata_log_dir,
        node_id=config.node_id,
        ignore_security=ignored,
        enforced=enforced,
    )
    for problem in report.stopping(BARNABAS_READ_ONLY):
        raise MetadataError(f"{problem.sentence}: {problem.remedy}")
    identity = report.identity
    assert identity is not None, "directories that contradict each other stop read.only"
    warnings = [problem.sentence for problem in report.stopping(BARNABAS)]
    warnings += security_warnings(report.security, enforced, ignored=ignored)
    if report.replayed is None or not report.replayed.exists:
        warnings.append(f"{report.metadata_log_dir} has no readable metadata log: the topics' configs are not known")
    image = _served_image(report.image, partitions_by_topic(report.directories), identity)
    absent = sum(state.leader == NO_LEADER for topic in image.topics.values() for state in topic.partitions.values())
    if absent:
        warnings.append(f"{absent} of {image.partition_count()} partitions are not in these directories")
    for warning in warnings:
        logger.warning("%s", warning)
    logger.info(
        "read only: nothing is written, node_id=%d cluster_id=%s topics=%d partitions=%d",
        identity.node_id,
        identity.cluster_id,
        len(image.topics),
        image.partition_count(),
    )
    epoch = 0 if report.replayed is None else max(0, report.replayed.last_epoch)
    voter = sole_voter(identity, report.replayed, report.metadata_log_dir)
    return ReadOnlyStore(identity, image, voter, epoch, warnings)


def _served_image(image: MetadataImage, found: PartitionDirectories, identity: NodeIdentity) -> MetadataImage:
    """Return `image` with every partition found on the disks led by this node, including unknown ones."""
    topics: dict[str, TopicImage] = {}
    configs = dict(image.configs)
    for name, topic in image.topics.items():
        here = _of_topic(found.get(name, {}), topic.topic_id)
        known = {
            number: _led(state, identity, here[number]) if number in here else _not_here(state)
            for number, state in topic.partitions.items()
        }
        unknown = _partitions_of({number: path for number, path in here.items() if number not in known}, identity)
        topics[name] = topic._replace(partitions=unknown | known)
    for name, paths in found.items():
        if name not in topics:
            logger.warning("topic %s is missing in the metadata, so it is served from its directories", name)
            topics[name] = _adopted(name, paths, identity)
            configs[topic_scope(name)] = adopted_configs(name)
    names = {topic.topic_id: name for name, topic in topics.items()}
    return image._replace(topics=topics, names=names, configs=configs)


def _of_topic(paths: Mapping[int, Path], topic_id: bytes) -> dict[int, Path]:
    """Return the directories of the topic with that id. A directory without a topic id counts by its name."""
    found = {}
    for number, path in paths.items():
        stored = _topic_id(path)
        if stored is not None and stored != topic_id:
            logger.warning("%s belongs to another topic and is not served, topic_id=%s", path, uuid_text(stored))
        else:
            found[number] = path
    return found


def _adopted(name: str, paths: Mapping[int, Path], identity: NodeIdentity) -> TopicImage:
    """Return a topic that is missing in the metadata, from its directories."""
    ids = {stored for path in paths.values() if (stored := _topic_id(path)) is not None}
    topic_id = min(ids) if ids else random_uuid()
    return TopicImage(name, topic_id, _partitions_of(_of_topic(paths, topic_id), identity))


def _partitions_of(here: Mapping[int, Path], identity: NodeIdentity) -> dict[int, PartitionState]:
    """Return partitions up to the highest number found; missing ones have no leader."""
    nowhere = PartitionState((identity.node_id,), (), NO_LEADER)
    return {
        number: _led(nowhere, identity, here[number]) if number in here else nowhere
        for number in range(max(here, default=-1) + 1)
    }


def _topic_id(path: Path) -> bytes | None:
    try:
        return read_partition_metadata(path)
    except StorageError as error:
        logger.warning("%s, so the directory's name decides", error)
        return None


def _led(state: PartitionState, identity: NodeIdentity, path: Path) -> PartitionState:
    us = (identity.node_id,)
    directories = (identity.directory_ids[path.parent],)
    return state._replace(replicas=us, isr=us, leader=identity.node_id, directories=directories)


def _not_here(state: PartitionState) -> PartitionState:
    return state._replace(leader=NO_LEADER)
