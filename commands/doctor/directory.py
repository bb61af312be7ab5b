"""The work of `barnabas doctor dir`: describes log directories, with the programs that can open them and remedies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from barnabas.broker.metadata.directories.examine import examine
from barnabas.broker.metadata.directories.report import (
    BARNABAS,
    BARNABAS_READ_ONLY,
    KAFKA_VERSIONS,
    LogDirectoryReport,
    kafka,
)
from barnabas.broker.storage.inspection.transaction_decisions import Decision
from barnabas.commands.doctor.directory_survey import Survey, survey
from barnabas.commands.doctor.mirrors import mirror_sentences, mirrors_json
from barnabas.commands.failures import CommandFailure
from barnabas.commands.output import print_line, print_table
from barnabas.explanation.wording import counted
from barnabas.protocol.uuids import uuid_text

PROGRAMS = (BARNABAS, BARNABAS_READ_ONLY, *map(kafka, KAFKA_VERSIONS))


class DirectoryDoctor:
    """One run of the command."""

    def __init__(self, log_dirs: Sequence[Path], metadata_log_dir: Path | None) -> None:
        """Raises CommandFailure if none of them is a broker's log directory, OSError."""
        log_dirs = [path.absolute() for path in log_dirs]
        absolute = None if metadata_log_dir is None else metadata_log_dir.absolute()
        # Whether its access rules are enforced depends on a configuration, which is not read.
        self.report = examine(log_dirs, metadata_log_dir=absolute, ignore_security=True)
        if self.report.is_new and not any(each.partitions for each in self.report.directories):
            raise CommandFailure(f"{log_dirs[0]} is not a broker's log directory: no meta.properties and no partitions")
        self.survey: Survey = survey(self.report)

    def stops(self, program: str) -> bool:
        """Whether a problem keeps the program from opening the directories."""
        return bool(self.report.stopping(program))

    def as_json(self) -> dict[str, Any]:
        """The whole report as JSON. Field names are stable; new ones may be added."""
        report, found = self.report, self.survey
        replayed = report.replayed
        return {
            "last_writer": report.last_writer.value,
            "cluster_id": report.cluster_id,
            "node_id": report.node_id,
            "clean": report.was_clean,
            "metadata_log_dir": str(report.metadata_log_dir),
            "metadata_version": report.image.level,
            "kraft_version": None if replayed is None else replayed.kraft_version,
            "features": dict(report.image.features),
            "metadata_end_offset": report.image.end_offset,
            "directories": [self._directory_json(each) for each in report.directories],
            "topics": [
                {
                    "name": each.name,
                    "topic_id": None if each.topic_id is None else uuid_text(each.topic_id),
                    "partitions": each.partitions,
                    "partitions_here": each.here,
                    "size_bytes": each.size_bytes,
                    "configs": dict(report.image.topic_configs(each.name)),
                }
                for each in found.topics
            ],
            "groups": [{"group_id": group_id, "offsets": count} for group_id, count in found.groups.items()],
            "unfinished_transactions": [
                {
                    "transactional_id": each.transactional_id,
                    "state": each.status_name,
                    "producer_id": each.producer_id,
                    "producer_epoch": each.producer_epoch,
                }
                for each in found.unfinished.values()
            ],
            "open_transactions": [
                {
                    "topic": each.topic_partition.topic,
                    "partition": each.topic_partition.partition,
                    "producer_id": each.producer_id,
                    "producer_epoch": each.producer_epoch,
                    "first_offset": each.first_offset,
                }
                for each in found.open_transactions
            ],
            "security": {
                "users": report.security.users,
                "acls": report.security.acls,
                "delegation_tokens": report.security.delegation_tokens,
                "quotas": report.security.quotas,
            },
            "mirrors": mirrors_json(report.image),
            "programs": {
                program: {
                    "can_open": not report.stopping(program),
                    "problems": [problem.code for problem in report.stopping(program)],
                }
                for program in PROGRAMS
            },
            "problems": [
                {
                    "code": problem.code,
                    "sentence": problem.sentence,
                    "remedy": problem.remedy,
                    "stops": sorted(problem.stops),
                }
                for problem in report.problems
            ],
            "notes": list(found.notes),
        }

    def print(self, programs: Sequence[str] = PROGRAMS) -> None:
        """Print the report for people, with the problems of `programs`."""
        self._print_head()
        self._print_topics()
        self._print_logs()
        print_line("")
        for program in programs:
            codes = ", ".join(dict.fromkeys(each.code for each in self.report.stopping(program)))
            print_line(f"{program}: {f'no: {codes}' if codes else 'opens it'}")
        for problem in self.report.problems:
            if not problem.stops.isdisjoint(programs):
                print_line(f"\nproblem {problem.code}: {problem.sentence}\n  what to do: {problem.remedy}")
        for note in self.survey.notes:
            print_line(f"\nnote: {note}")

    def _print_head(self) -> None:
        report = self.report
        print_line(f"node {_or_none(report.node_id)} of cluster {_or_none(report.cluster_id)}")
        print_line(f"last writer of the metadata: {report.last_writer.value}")
        if report.image.level is not None:
            features = ", ".join(f"{name} {level}" for name, level in sorted(report.image.features.items()))
            print_line(f"levels: {features}; metadata log ends at offset {report.image.end_offset}")
        for each in report.directories:
            print_line(f"{each.path}: {self._state(each)}")

    def _state(self, directory: LogDirectoryReport) -> str:
        if not directory.exists:
            return "does not exist"
        holder = self.survey.holders.get(directory.path)
        if holder is not None:
            state = f"open in process {holder}" if holder else "open in another process"
        elif not directory.is_log_dir:
            state = "metadata log only"
        else:
            state = "stopped cleanly" if directory.has_marker else "not stopped cleanly, the next start recovers"
        left = [
            (directory.deleting, "being deleted"),
            (directory.strays, "stray"),
            (directory.futures, "half moved"),
        ]
        others = "".join(f", {len(paths)} {what}" for paths, what in left if paths)
        return f"{counted(len(directory.partitions), 'partition')}{others}; {state}"

    def _print_topics(self) -> None:
        topics = self.survey.topics
        total = sum(each.size_bytes for each in topics)
        print_line(f"\n{counted(len(topics), 'topic')}, {total:,} bytes")
        if topics:
            rows = [(each.name, _count(each.here, each.partitions), each.size_bytes) for each in topics]
            print_table(("topic", "partitions", "bytes"), rows)

    def _print_logs(self) -> None:
        found, security = self.survey, self.report.security
        if found.groups:
            print_line(f"\n{counted(len(found.groups), 'group')} with committed offsets")
            print_table(("group", "offsets"), list(found.groups.items()))
        for decision in found.unfinished.values():
            print_line(f"\n{_unfinished_sentence(decision)}")
        for each in found.open_transactions:
            remedy = (
                "its coordinator ends it after a start"
                if each.producer_id in found.unfinished
                else "no coordinator ends it: `barnabas log abort-transaction` does, or `barnabas transaction abort` "
                "while a broker runs"
            )
            print_line(
                f"\nopen transaction: {each.topic_partition} from offset {each.first_offset}, producer "
                f"{each.producer_id}, epoch {each.producer_epoch}: read_committed consumers stop before it; {remedy}"
            )
        for sentence in mirror_sentences(self.report.image):
            print_line(f"\n{sentence}")
        counts = (
            (security.users, "SCRAM credential"),
            (security.acls, "ACL"),
            (security.delegation_tokens, "delegation token"),
            (security.quotas, "client quota"),
        )
        listed = ", ".join(counted(count, name) for count, name in counts if count)
        if listed:
            print_line(f"\nsecurity in the metadata log: {listed}")
        if security.guards:
            print_line("a start needs a configuration that enforces it, or --ignore-security")

    def _directory_json(self, directory: LogDirectoryReport) -> dict[str, Any]:
        properties = directory.properties
        return {
            "path": str(directory.path),
            "exists": directory.exists,
            "is_log_dir": directory.is_log_dir,
            "version": None if properties is None else properties.version,
            "node_id": None if properties is None else properties.node_id,
            "cluster_id": None if properties is None else properties.cluster_id,
            "directory_id": (
                None if properties is None or properties.directory_id is None else uuid_text(properties.directory_id)
            ),
            "clean": directory.has_marker,
            "open_in_process": self.survey.holders.get(directory.path),
            "partitions": len(directory.partitions),
            "being_deleted": len(directory.deleting),
            "stray": len(directory.strays),
            "half_moved": len(directory.futures),
        }


def _unfinished_sentence(decision: Decision) -> str:
    """Return what a start, of Barnabas or of Kafka, does with a transaction of the coordinator."""
    end = (
        "it goes on after a start, until its producer or its timeout ends it"
        if decision.is_open
        else "its end markers are written after the next start"
    )
    return (
        f"transaction of {decision.transactional_id}: {decision.status_name}, producer {decision.producer_id}, epoch "
        f"{decision.producer_epoch}; {end}"
    )


def _or_none(value: object) -> str:
    return "(none)" if value is None else str(value)


def _count(here: int, partitions: int) -> str:
    return str(here) if here == partitions else f"{here} of {partitions}"
