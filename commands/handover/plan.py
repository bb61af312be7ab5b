"""The work of `barnabas handover`: finds what keeps Apache Kafka from starting on a directory, and mends what it can.

Problems that records of the metadata log mend without a loss are in `mending`; others are reported and left to the
user. Nothing is written without `execute`: then these records, and the server.properties.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from barnabas.broker.metadata.directories.examine import examine
from barnabas.broker.metadata.directories.report import DirectoryReport, Problem, kafka
from barnabas.broker.storage.files.durable_files import write_durably
from barnabas.commands.doctor.directory_survey import Survey, survey
from barnabas.commands.doctor.mirrors import handover_notes
from barnabas.commands.failures import CommandFailure
from barnabas.commands.handover.mending import mend, plan_mending
from barnabas.commands.handover.properties import Listening, file_text, fitted, server_properties
from barnabas.commands.handover.secure_listeners import SecureListeners
from barnabas.commands.output import print_line
from barnabas.explanation.wording import counted


class Handover:
    """A hand-over to one version of Kafka."""

    def __init__(
        self,
        log_dirs: Sequence[Path],
        metadata_log_dir: Path | None,
        kafka_version: str,
        listening: Listening,
        carried: Mapping[str, str],
        output: Path | None,
        secure: SecureListeners | None = None,
    ) -> None:
        """Reads only. Raises CommandFailure for a directory that is not a broker's, OSError."""
        absolute = [path.absolute() for path in log_dirs]
        self._version = kafka_version
        self._listening = listening
        self._secure = secure
        self._carried, self._changed = fitted(carried, kafka_version, keeps_listeners=secure is not None)
        self._output = (output or absolute[0].parent / "kafka-server.properties").absolute()
        self._report: DirectoryReport = examine(
            absolute,
            metadata_log_dir=None if metadata_log_dir is None else metadata_log_dir.absolute(),
            ignore_security=True,
        )
        if self._report.is_new:
            raise CommandFailure(f"{absolute[0]} is not a broker's log directory: no meta.properties")
        self._survey: Survey = survey(self._report)
        stopping = self._report.stopping(kafka(kafka_version))
        self._mending = plan_mending(self._report, stopping, f"Apache Kafka {kafka_version}")
        self.refusals: tuple[Problem, ...] = self._mending.refusals
        """Problems that keep Kafka from starting and cannot be mended here."""

    def print(self) -> None:
        """Print the changes and the problems."""
        report, name = self._report, f"Apache Kafka {self._version}"
        where = ", ".join(str(each.path) for each in report.directories)
        print_line(f"node {report.node_id} of cluster {report.cluster_id or '(none)'} in {where}")
        for problem in self.refusals:
            print_line(f"{name} would not start: {problem.sentence}\n  what to do: {problem.remedy}")
        for sentence in (*self._mending.sentences, *self._changed):
            print_line(sentence)
        for note in self._notes():
            print_line(f"note: {note}")
        if not self.refusals:
            print_line(f"server.properties: {self._output}")

    def print_commands(self) -> None:
        """Print the three commands to run next."""
        directories = " ".join(str(each.path) for each in self._report.directories if each.is_log_dir)
        print_line("then:")
        print_line(f"  barnabas doctor dir {directories} --kafka-version {self._version}")
        print_line(f"  bin/kafka-server-start.sh {self._output}")
        print_line(f"  bin/kafka-topics.sh --bootstrap-server {self._listening.bootstrap} --describe")

    def execute(self, *, overwrite: bool) -> None:
        """Make the changes. Raises CommandFailure if a broker is running or the file exists already, OSError."""
        for path, holder in self._survey.holders.items():
            raise CommandFailure(f"{path} is open in process {holder}: stop that broker first")
        if self._output.exists() and not overwrite:
            raise CommandFailure(f"{self._output} already exists: name another file with --output, or give --overwrite")
        if self._mending.records or self._mending.needs_snapshot:
            mend(self._report, self._mending)
        properties = server_properties(self._report, self._version, self._listening, self._carried, self._secure)
        head = (
            f"Apache Kafka {self._version} on the log directories of node {self._report.node_id}, cluster "
            f"{self._report.cluster_id}.",
            "Written by `barnabas handover`. Barnabas and Kafka cannot run on them together: the second is refused.",
        )
        write_durably(self._output, file_text(properties, head).encode())

    def _notes(self) -> list[str]:
        notes = list(self._survey.notes)
        if not self._report.was_clean and not self._survey.holders:
            notes.append("the last stop was not clean: Kafka will recover the logs when it starts")
        if self._survey.unfinished:
            ids = ", ".join(
                sorted(f"{each.transactional_id} ({each.status_name})" for each in self._survey.unfinished.values())
            )
            notes.append(f"unfinished transactions, which Kafka's coordinator finishes: {ids}")
        hanging = [each for each in self._survey.open_transactions if each.producer_id not in self._survey.unfinished]
        if hanging:
            notes.append(
                f"{counted(len(hanging), 'open transaction')} without a coordinator: `barnabas log abort-transaction` "
                "or kafka-transactions ends them"
            )
        notes += handover_notes(self._report.image)
        if self._secure is not None:
            notes += self._secure.notes
        elif self._report.security.guards:
            notes.append(
                "the metadata has users, ACLs or tokens, and the file has neither an authorizer nor SASL listeners: "
                "name the broker's configuration with --config, or add them"
            )
        return notes
