"""examine: a read-only examination of a node's log directories, with the problems that stop each program.

`serve` refuses with the sentences of the problems that stop Barnabas; `doctor dir` and `handover` print all of them.
Every reason to refuse a start is checked here, before the first byte is written, because opening a directory already
writes (an epoch) and removes the clean-shutdown marker: a refused start leaves the directories unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from barnabas.broker.metadata.directories.adoption import adoption_records
from barnabas.broker.metadata.directories.contents import (
    list_log_directory,
    metadata_log_problems,
    misplaced_partitions,
)
from barnabas.broker.metadata.directories.kafka_limits import kafka_problems
from barnabas.broker.metadata.directories.leadership import ensure_single_node
from barnabas.broker.metadata.directories.meta_properties import FILE_NAME, NodeIdentity, settle_identity
from barnabas.broker.metadata.directories.missing import missing_directories
from barnabas.broker.metadata.directories.opening import ensure_log_is_not_elsewhere, ensure_transaction_can_end
from barnabas.broker.metadata.directories.report import (
    ALL_KAFKA,
    ALL_PROGRAMS,
    BARNABAS,
    WRITERS,
    DirectoryReport,
    LastWriter,
    LogDirectoryReport,
    Problem,
    kafka,
)
from barnabas.broker.metadata.directories.security import (
    EnforcedSecurity,
    security_counts,
    security_problems,
    unknown_security_problem,
)
from barnabas.broker.metadata.errors import MetadataError, UnsupportedMetadataError
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.log import bootstrap_checkpoint
from barnabas.broker.metadata.log.log_replay import METADATA_DIRECTORY, ReplayedLog, replay_metadata_directory
from barnabas.protocol.metadata.records import MetadataRecord

STANDBY_FILE = "standby.json"
"""The file of a directory that is a standby's, or has a standby: see standby_state."""

STANDBY_PROBLEM = "standby"
"""Code of the problem of a directory that only `barnabas standby` may open."""


def examine(
    log_dirs: Sequence[Path],
    *,
    metadata_log_dir: Path | None = None,
    node_id: int | None = None,
    ignore_security: bool = False,
    enforced: EnforcedSecurity = EnforcedSecurity(),  # noqa: B008 - it is immutable
    adopt_topics: bool = False,
    are_all: bool = True,
) -> DirectoryReport:
    """Examine the directories. `node_id` is the configured one; `metadata_log_dir` defaults to the first of log_dirs.

    `enforced` is the security of the configuration, by default none; `ignore_security` accepts access rules that it
    does not enforce, `adopt_topics` partitions without a metadata log. `are_all` False: one of the node's directories
    is offline, so missing partitions may be there. A directory that does not exist counts as new. Raises OSError for a
    directory that cannot be listed or read.
    """
    required = None if ignore_security else enforced
    examination = _Examination(log_dirs, metadata_log_dir or log_dirs[0], node_id, required, adopt_topics)
    return examination.report(are_all=are_all)


class _Examination:
    """Collects the findings of one examination."""

    def __init__(
        self,
        log_dirs: Sequence[Path],
        metadata_log_dir: Path,
        node_id: int | None,
        enforced: EnforcedSecurity | None,
        adopt_topics: bool,
    ) -> None:
        """`enforced` None: security is ignored."""
        others = [] if metadata_log_dir in log_dirs else [metadata_log_dir]
        self._paths = [*log_dirs, *others]
        self._log_dirs = log_dirs
        self._metadata_log_dir = metadata_log_dir
        self._node_id = node_id
        self._enforced = enforced
        self._adopt_topics = adopt_topics
        self._problems: list[Problem] = []
        self._torn: dict[Path, bytes] = {}

    def report(self, *, are_all: bool) -> DirectoryReport:
        """Check everything, in the order of a start."""
        directories = tuple(self._list(path) for path in self._paths)
        identity, outdated = self._settle(directories)
        self._check_standby()
        replayed = self._replay()
        is_certain = self._check_identity(directories, replayed)
        bootstrap = self._read_bootstrap(replayed)
        if replayed is not None and identity is not None:
            self._check_metadata(replayed, identity, directories, is_certain=is_certain, are_all=are_all)
            self._problems += misplaced_partitions(directories, replayed.image, self._torn)
            if are_all and is_certain:
                self._problems += missing_directories(directories, replayed.image, identity)
            self._problems += metadata_log_problems(self._metadata_log_dir / METADATA_DIRECTORY, self._torn)
            self._problems += kafka_problems(replayed, bootstrap)
        security = security_counts(replayed, bootstrap)
        if self._enforced is not None:
            self._problems += security_problems(security, self._enforced, self._metadata_log_dir)
        return DirectoryReport(
            directories=directories,
            metadata_log_dir=self._metadata_log_dir,
            last_writer=_last_writer(replayed, identity),
            identity=identity,
            outdated=tuple(outdated),
            replayed=replayed,
            bootstrap=bootstrap,
            security=security,
            problems=tuple(self._problems),
            torn_topic_ids=self._torn,
        )

    def _list(self, path: Path) -> LogDirectoryReport:
        found, problems = list_log_directory(path, is_log_dir=path in self._log_dirs)
        self._problems += problems
        return found

    def _settle(self, directories: Sequence[LogDirectoryReport]) -> tuple[NodeIdentity | None, list[Path]]:
        # The metadata log's directory first: the others are compared with its node.
        first = self._metadata_log_dir
        found = {each.path: each.properties for each in sorted(directories, key=lambda each: each.path != first)}
        try:
            return settle_identity(found, self._node_id)
        except MetadataError as error:
            remedy = "give log.dirs that belong to one node of one cluster, each with its own directory.id"
            self._add("identity", error, remedy, ALL_PROGRAMS)
            return None, []

    def _check_identity(self, directories: Sequence[LogDirectoryReport], replayed: ReplayedLog | None) -> bool:
        """Report lost and damaged meta.properties; return whether the directories say which node they belong to."""
        is_adoption = replayed is not None and not replayed.exists
        faulty = [each for each in directories if each.fault and not (is_adoption and not _has_file(each.path))]
        if faulty or any(each.properties is not None and each.properties.directory_id is None for each in directories):
            from barnabas.broker.metadata.directories.lost_identity import identity_problems  # late: few starts need it

            image = MetadataImage() if replayed is None else replayed.image
            self._problems += identity_problems(directories, faulty, image, self._node_id)
        return not faulty

    def _check_standby(self) -> None:
        if not (self._metadata_log_dir / STANDBY_FILE).exists():
            return
        from barnabas.broker.metadata.directories.standby_state import ensure_may_serve  # here: few directories have it

        try:
            ensure_may_serve(self._metadata_log_dir)
        except MetadataError as error:
            self._add(STANDBY_PROBLEM, error, "promote it, or let it follow the active broker", frozenset({BARNABAS}))

    def _replay(self) -> ReplayedLog | None:
        directory = self._metadata_log_dir / METADATA_DIRECTORY
        copy = "restore the file from a copy; `barnabas log verify` names each position"
        try:
            replayed = replay_metadata_directory(directory)
        except UnsupportedMetadataError as error:
            remedy = "start the version of Apache Kafka that wrote it, or a newer Barnabas"
            self._add("unsupported-metadata", error, remedy, _unable(error))
            if error.hides_security and self._enforced is not None and not self._enforced.authorizer:
                self._problems.append(unknown_security_problem(error.sentence))
        except MetadataError as error:
            self._add("damaged-metadata", error, copy, WRITERS)
        else:
            if replayed.damage is not None:
                self._problems.append(Problem("damaged-metadata", replayed.damage, copy, WRITERS))
            return replayed
        return None

    def _read_bootstrap(self, replayed: ReplayedLog | None) -> tuple[MetadataRecord, ...] | None:
        if replayed is None or replayed.image.level is not None:
            return None
        try:
            records = bootstrap_checkpoint.read_bootstrap_records(self._metadata_log_dir)
        except UnsupportedMetadataError as error:
            remedy = "start the version of Apache Kafka that formatted it, or a newer Barnabas"
            self._add("unsupported-metadata", error, remedy, _unable(error))
        except MetadataError as error:
            self._add("damaged-bootstrap", error, "restore the file, or format the directory again", WRITERS)
        else:
            return None if records is None else tuple(records)
        return None

    def _check_metadata(
        self,
        replayed: ReplayedLog,
        identity: NodeIdentity,
        directories: Sequence[LogDirectoryReport],
        *,
        is_certain: bool,
        are_all: bool,
    ) -> None:
        try:
            if not replayed.exists:
                ensure_log_is_not_elsewhere(identity, self._metadata_log_dir)
                self._check_adoption(identity, directories, are_all=are_all)
            if replayed.image.level is not None:
                ensure_transaction_can_end(replayed, replayed.image.level)
        except MetadataError as error:
            self._add("metadata-log", error, "name the right directory in metadata.log.dir", WRITERS)
        if not is_certain:
            return
        try:
            ensure_single_node(replayed.image, identity.node_id, str(self._metadata_log_dir))
        except MetadataError as error:
            remedy = "reassign every partition to this node alone, or serve what is here with read.only=true"
            self._add("several-brokers", error, remedy, frozenset({BARNABAS}))

    def _check_adoption(
        self, identity: NodeIdentity, directories: Sequence[LogDirectoryReport], *, are_all: bool
    ) -> None:
        """Report partitions without a metadata log: a start knows neither their configs nor what else was in it."""
        found = partitions_by_topic(directories)
        if not found:
            return
        adopting = (
            "`barnabas serve --adopt-topics` serves the topics, and deletes nothing in them until their configs are "
            "set; read.only=true only reads"
        )
        if identity.zookeeper:
            sentence = (
                f"{self._metadata_log_dir} has no metadata log, and the configs of its topics were in ZooKeeper, "
                "without which a start could delete records"
            )
            stops = ALL_KAFKA if self._adopt_topics else WRITERS
            self._problems.append(Problem("zookeeper", sentence, adopting, stops))
        elif not self._adopt_topics:
            topic, partitions = next(iter(found.items()))
            sentence = (
                f"{self._metadata_log_dir} has nothing in {METADATA_DIRECTORY}, "
                f"but {next(iter(partitions.values()))} holds records of topic {topic}"
            )
            remedy = f"restore the metadata log, or name its directory in metadata.log.dir; if it is lost, {adopting}"
            self._problems.append(Problem("metadata-log", sentence, remedy, WRITERS))
        # Nothing else tells that a disk is missing. A separate directory is new to a Kafka with ZooKeeper.
        unused = [each.path for each in directories if not each.is_used and (each.is_log_dir or not identity.zookeeper)]
        if unused or not are_all:
            which = f"{unused[0]} is empty" if unused else "a log directory is offline"
            sentence = (
                f"{which}, and topics without a metadata log are adopted from all of the node's directories at once"
            )
            remedy = "mount its disk, or leave a directory out of log.dirs and metadata.log.dir that was never used"
            self._problems.append(Problem("missing-directory", sentence, remedy, frozenset({BARNABAS})))
        adoption_records(found, node_id=identity.node_id, directory_ids=identity.directory_ids)

    def _add(self, code: str, error: MetadataError, remedy: str, stops: frozenset[str]) -> None:
        self._problems.append(Problem(code, error.sentence, error.remedy or remedy, stops))


def _has_file(directory: Path) -> bool:
    return (directory / FILE_NAME).exists()


def _unable(error: UnsupportedMetadataError) -> frozenset[str]:
    """Return the programs that cannot read it either."""
    return WRITERS - set(map(kafka, ("3.7", "3.8", "3.9"))) if error.is_older else WRITERS


def partitions_by_topic(directories: Sequence[LogDirectoryReport]) -> dict[str, dict[int, Path]]:
    """Return topic -> partition -> current directory, of all log directories."""
    found: dict[str, dict[int, Path]] = {}
    for directory in directories:
        for (topic, partition), path in directory.partitions.items():
            found.setdefault(topic, {})[partition] = path
    return found


def _last_writer(replayed: ReplayedLog | None, identity: NodeIdentity | None) -> LastWriter:
    if replayed is None:
        return LastWriter.UNKNOWN
    if not replayed.image.end_offset:  # Kafka's format command leaves a snapshot at offset 0
        return LastWriter.ZOOKEEPER if identity is not None and identity.zookeeper else LastWriter.NOBODY
    return LastWriter.KAFKA if replayed.led_by_kafka else LastWriter.BARNABAS
