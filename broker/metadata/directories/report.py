"""The result of `examine` for a node's log directories, a value that all commands share.

A `Problem` is a reason why a program does not start on the directories or does not serve them. Programs are named
"barnabas", "barnabas read.only" and "kafka 3.7" to "kafka 4.3".
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from barnabas.broker.metadata.directories.meta_properties import MetaProperties, NodeIdentity
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.log.log_replay import ReplayedLog
from barnabas.protocol.metadata.records import MetadataRecord
from barnabas.protocol.topic_partition import TopicPartition

BARNABAS = "barnabas"
BARNABAS_READ_ONLY = "barnabas read.only"
KAFKA_VERSIONS = ("3.7", "3.8", "3.9", "4.0", "4.1", "4.2", "4.3")


def kafka(version: str) -> str:
    """Return the program name of Apache Kafka `version` ("4.3" or "4.3.0")."""
    return "kafka " + ".".join(version.split(".")[:2])


ALL_KAFKA = frozenset(map(kafka, KAFKA_VERSIONS))
WRITERS = ALL_KAFKA | {BARNABAS}
"""All but read.only, which serves the readable part of a damaged directory."""
ALL_PROGRAMS = WRITERS | {BARNABAS_READ_ONLY}


class LastWriter(Enum):
    """The program that wrote the metadata log last; the value is its text in a sentence."""

    NOBODY = "nobody yet"
    UNKNOWN = "not known, the metadata log cannot be read"
    BARNABAS = "Barnabas"
    KAFKA = "Apache Kafka"
    ZOOKEEPER = "Apache Kafka with ZooKeeper"


class Problem(NamedTuple):
    """A reason why some programs cannot start on the directories.

    code       a stable short name for scripts: "two-clusters"
    sentence   the fault with its path
    remedy     how to fix it
    stops      the programs that do not start, or would lose data
    """

    code: str
    sentence: str
    remedy: str
    stops: frozenset[str]


_EMPTY: Final[Mapping[Any, Any]] = MappingProxyType({})


class LogDirectoryReport(NamedTuple):
    """One of log.dirs, or metadata.log.dir.

    is_log_dir   False for a metadata.log.dir outside of log.dirs
    properties   its meta.properties, None if missing or damaged
    has_marker   the clean-shutdown marker exists
    partitions   current directories of the partitions, without the metadata log's
    deleting     -delete directories, waiting for their removal
    strays       -stray directories, unknown to the metadata
    futures      -future directories, copies of unfinished moves
    fault        a sentence about a meta.properties that is damaged, or missing although the directory holds data
    strangers    other files in a directory that no program has used yet
    """

    path: Path
    is_log_dir: bool
    exists: bool
    properties: MetaProperties | None
    has_marker: bool
    partitions: Mapping[TopicPartition, Path] = _EMPTY
    deleting: tuple[Path, ...] = ()
    strays: tuple[Path, ...] = ()
    futures: tuple[Path, ...] = ()
    fault: str | None = None
    strangers: tuple[str, ...] = ()

    @property
    def is_used(self) -> bool:
        """Whether a program has used the directory before."""
        return self.properties is not None or self.fault is not None


class SecurityCounts(NamedTuple):
    """Numbers of SCRAM credentials, ACLs, delegation tokens and limits of clients."""

    users: int = 0
    acls: int = 0
    delegation_tokens: int = 0
    quotas: int = 0

    @property
    def guards(self) -> bool:
        """Whether any of them restricts access."""
        return bool(self.users or self.acls or self.delegation_tokens)


class DirectoryReport(NamedTuple):
    """The findings of a read-only examination.

    directories        log.dirs in order, then metadata.log.dir if it is another directory
    last_writer        the last leader of the metadata log
    identity           node id, cluster id and directory ids for a start; None if the directories contradict each other
    outdated           directories whose meta.properties a start of Barnabas would write
    replayed           state of the metadata log; None if it cannot be read
    bootstrap          the records of bootstrap.checkpoint, read only if the log has no level
    security           numbers of users, ACLs, tokens and quotas
    problems           in the order of their discovery
    torn_topic_ids     partition directories whose partition.metadata was cut off, with the topic ids that it had
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
    torn_topic_ids: Mapping[Path, bytes] = _EMPTY

    @property
    def image(self) -> MetadataImage:
        """Topics, configs and levels; empty if the log cannot be read."""
        return MetadataImage() if self.replayed is None else self.replayed.image

    @property
    def cluster_id(self) -> str | None:
        """From the first meta.properties that has one, else None."""
        said = (each.properties.cluster_id for each in self.directories if each.properties is not None)
        return next((cluster_id for cluster_id in said if cluster_id), None)

    @property
    def node_id(self) -> int | None:
        """From the first meta.properties that has one, else None."""
        said = (each.properties.node_id for each in self.directories if each.properties is not None)
        return next((node_id for node_id in said if node_id is not None), None)

    @property
    def is_new(self) -> bool:
        """Whether no program has used the directories yet."""
        return not any(each.is_used for each in self.directories)

    @property
    def was_clean(self) -> bool:
        """Whether the last stop was clean in every used directory. True for new directories."""
        used = [each for each in self.directories if each.is_used]
        # Only log.dirs get markers, not a metadata.log.dir outside of them.
        held = [each for each in used if each.is_log_dir]
        return bool(held or not used) and all(each.has_marker for each in held)

    def stopping(self, program: str) -> tuple[Problem, ...]:
        """Return the problems that stop `program`."""
        return tuple(problem for problem in self.problems if program in problem.stops)
