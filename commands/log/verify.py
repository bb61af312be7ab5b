"""The work of `barnabas log verify`: the log engine's checks, and those against the metadata log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from barnabas.broker.storage.inspection.findings import Finding
from barnabas.broker.storage.inspection.lock_probe import lock_holder
from barnabas.broker.storage.inspection.verify_directory import (
    DirectoriesCheck,
    is_partition_directory,
    log_bytes,
)
from barnabas.commands.log.line_report import LineReport, line_report
from barnabas.commands.log.log_directories import logs_of
from barnabas.commands.output import print_line, print_note
from barnabas.commands.progress import progress_bar
from barnabas.explanation.wording import counted


class Verification:
    """One run of the command; `findings` is their number."""

    def __init__(self, directories: Sequence[Path], *, as_json: bool) -> None:
        self.findings = 0
        self._directories = directories
        self._as_json = as_json
        self._bytes = 0
        self._report = LineReport()

    def run(self) -> None:
        """Check everything, print each finding and a summary. Raises CommandFailure, OSError."""
        from barnabas.commands.log.verify_metadata import metadata_findings

        self._note_brokers()
        total = sum(log_bytes(path) for directory in self._directories for path in logs_of(directory))
        with line_report() as self._report, progress_bar("verifying", total=total, unit="bytes") as progress:

            def advance(amount: int) -> None:
                self._bytes += amount
                progress.advance(amount)

            check = DirectoriesCheck(self._directories, advance=advance)
            for finding in check.run():
                self._print(finding)
            for finding in metadata_findings(self._directories):
                self._print(finding)
        self._print_summary(check.logs)

    def _note_brokers(self) -> None:
        for directory in self._directories:
            log_dir = directory.absolute().parent if is_partition_directory(directory) else directory
            holder = lock_holder(log_dir)
            if holder is not None:
                who = f"process {holder}" if holder else "a process"
                print_note(
                    f"a broker ({who}) is using {log_dir}: the data that it is writing now is not checked, "
                    "nor are the checkpoints' offsets; stop it to check everything"
                )

    def _print(self, finding: Finding) -> None:
        self.findings += 1
        if self._as_json:
            fields = {"file": str(finding.path), "position": finding.position, "message": finding.message}
            self._report.line(json.dumps({"type": "finding", **fields}))
        elif finding.position is None:
            self._report.line(f"{finding.path}: {finding.message}")
        else:
            self._report.line(f"{finding.path}: position {finding.position}: {finding.message}")

    def _print_summary(self, logs: int) -> None:
        if self._as_json:
            counts = {"logs": logs, "bytes": self._bytes, "findings": self.findings}
            print_line(json.dumps({"type": "summary", **counts}))
        else:
            found = counted(self.findings, "finding") if self.findings else "no finding"
            print_line(f"{counted(logs, 'log')}, {self._bytes:,} bytes: {found}")
