"""What `examine` says of a node's log directories: a value, so that every command tells the same story.

A `Problem` is one reason why a program would not start on the directories, or not serve them. Programs are named by
texts: "barnabas", "barnabas read.only" and "kafka 3.7" to "kafka 4.3".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from barnabas.broker.metadata.directories.meta_properties import MetaProperties, NodeIdentity
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.log.log_replay import ReplayedLog
from barnabas.protocol.metadata.records import MetadataRecord
from barnabas.protocol.topic_partition import TopicPartition

BARNABAS = "barnabas"
BARNABAS_READ_ONLY = "barnabas read.only"
KAFKA_VERSIONS = ("3.7", "3.8", "3.9", "4.0", "4.1", "4.2", "4.3")


def kafka(version: str) -> str:
    """The name of Apache Kafka `version` ("4.3" or "4.3.0") among the programs that a problem stops."""
    return "kafka " + ".".join(version.split(".")[:2])


ALL_KAFKA = frozenset(map(kafka, KAFKA_VERSIONS))
WRITERS = ALL_KAFKA | {BARNABAS}
"""All but read.only, which serves what it can read of a damaged directory."""
ALL_PROGRAMS = WRITERS | {BARNABAS_READ_ONLY}


class LastWriter(Enum):
    """Who had the directories last; the value is how a sentence says it."""

    NOBODY = "nobody yet"
    UNKNOWN = "not known, the metadata log cannot be read"
    BARNABAS = "Barnabas"
    KAFKA = "Apache Kafka"
    ZOOKEEPER = "Apache Kafka with ZooKeeper"


@dataclass(frozen=True, slots=True)
class Problem:
    """Why some programs cannot start on the directories.

    code       a short name that stays the same, for scripts: "two-clusters"
    sentence   what is wrong and where, with its path
    remedy     what to do about it
    stops      the programs that do not start, or would lose something
    """

    code: str
    sentence: str
    remedy: str
    stops: frozenset[str]


@dataclass(frozen=True, slots=True)
class LogDirectoryReport:
    """One of log.dirs, or metadata.log.dir.

    is_log_dir   False for a metadata.log.dir that is none of log.dirs
    properties   its meta.properties, or None where there is none or it cannot be read
    has_marker   the clean-shutdown marker is there
    partitions   the partitions' current directories, without the metadata log's
    deleting, strays, futures   those that wait for their removal, that nobody knew, that a move was filling
    """

    path: Path
    is_log_dir: bool
    exists: bool
    properties: MetaProperties | None
    has_marker: bool
    partitions: Mapping[TopicPartition, Path] = field(default_factory=dict)
    deleting: tuple[Path, ...] = ()
    strays: tuple[Path, ...] = ()
    futures: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class SecurityCounts:
    """What the metadata log holds for Kafka's authorizer, SASL and quotas; Barnabas enforces none of it."""

    users: int = 0
    acls: int = 0
    delegation_tokens: int = 0
    quotas: int = 0

    @property
    def guards(self) -> bool:
        """Whether there is anything by which Kafka keeps somebody out."""
        return bool(self.users or self.acls or self.delegation_tokens)


@dataclass(frozen=True, slots=True)
class DirectoryReport:
    """Everything that could be learned without a change on disk.

    directories        log.dirs in order, then metadata.log.dir where that is another one
    last_writer        who led the metadata log last
    identity           node id, cluster id and directory ids as a start would settle them; None if they contradict
    outdated           directories whose meta.properties a start of Barnabas would write
    replayed           what the metadata log says; None where it cannot be read
    bootstrap          the records of bootstrap.checkpoint, read only where the log says no level
    security           what is there of users, ACLs, tokens and quotas
    problems           in the order in which they were found
    """

    directories: tuple[LogDirectoryReport, ...]
    metadata_log_dir: Path
    last_writer: LastWriter
    identity: NodeIdentity | None
    outdated: tuple[Path, ...]
    replayed: ReplayedLog | None
    bootstrap: tuple[MetadataRecord, ...] | None
    security: SecurityCounts
    problems: tuple[Problem, ...]

    @property
    def image(self) -> MetadataImage:
        """Topics, configs and levels; an empty one where the log cannot be read."""
        return MetadataImage() if self.replayed is None else self.replayed.image

    @property
    def cluster_id(self) -> str | None:
        """As the first meta.properties that says one has it; None where none does."""
        said = (each.properties.cluster_id for each in self.directories if each.properties is not None)
        return next((cluster_id for cluster_id in said if cluster_id), None)

    @property
    def node_id(self) -> int | None:
        """As the first meta.properties that says one has it; None where none does."""
        said = (each.properties.node_id for each in self.directories if each.properties is not None)
        return next((node_id for node_id in said if node_id is not None), None)

    @property
    def is_new(self) -> bool:
        """Whether no program ever had one of the directories."""
        return all(each.properties is None for each in self.directories)

    @property
    def was_clean(self) -> bool:
        """Whether the last stop was clean in every directory that was in use. True for new directories."""
        used = [each for each in self.directories if each.properties is not None]
        # The markers are of directories that hold partitions: a metadata.log.dir outside of log.dirs never gets one.
        held = [each for each in used if each.is_log_dir]
        return bool(held or not used) and all(each.has_marker for each in held)

    def stopping(self, program: str) -> tuple[Problem, ...]:
        """The problems that stop `program`."""
        return tuple(problem for problem in self.problems if program in problem.stops)
