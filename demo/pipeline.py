"""`make pipeline-demo`: the flights through the broker and the jobs of `barnabas pipeline`, with a kill in the middle.

Each job runs as a command in its own process. Its results are checked without Spark, from its files and through the
client. See README.md.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import click

from barnabas import Admin, AdminConfig, ClientError
from barnabas.clients.testing import BrokerProcessError
from demo.broker_process import BrokerProcess
from demo.flights import Flight, load_flights
from demo.pipeline_files import archived_offsets, hours_that_differ, snapshot_rows
from demo.pipeline_jobs import JobError, PipelineJobs
from demo.screen import Screen
from demo.traffic import TrafficError, consume_flights, end_offsets, produce_flights
from demo.verification import Comparison

TOPIC = "flights"
REPLAYED = "flights-replayed"
MICRO_BATCHES = 6
"""Number of micro-batches of the archive; more than one, so that the job can be killed in the middle."""

ROWS = 60_000
"""Flights of about two months: the hourly archive has some 2,500 files, and the demo takes minutes."""


class PipelineDemo:
    """One run. `run` returns whether all checks passed."""

    def __init__(self, directory: Path, screen: Screen, *, rows: int | None, partitions: int, master: str) -> None:
        self._directory = directory
        self._screen = screen
        self._rows = rows
        self._partitions = partitions
        self._jobs = PipelineJobs(directory, master)
        self._archive = directory / "archive"
        self._is_good = True
        self._flights: Sequence[Flight] = ()

    def run(self) -> bool:
        """Run all steps. Raises BrokerProcessError, TrafficError, JobError or a ClientError when it cannot continue."""
        self._flights = load_flights(self._rows)
        with BrokerProcess(self._directory, {"auto.create.topics.enable": "false"}) as broker:
            asyncio.run(self._fill(broker.bootstrap))
            self._archive_with_a_kill(broker.bootstrap)
            self._snapshot(broker.bootstrap)
            self._replay(broker.bootstrap)
            self._audit_archive(broker.bootstrap)
            broker.stop_cleanly()
        self._audit_files(broker.data_directory)
        self._screen.table(
            "The jobs (seconds exclude the start of Spark)",
            ("job", "records", "bytes", "files", "seconds"),
            [
                (name, summary.records, summary.size_bytes, summary.files, f"{summary.seconds:.1f}")
                for name, summary in self._jobs.done
            ],
        )
        return self._is_good

    async def _fill(self, bootstrap: str) -> None:
        async with Admin(AdminConfig(bootstrap=bootstrap)) as admin:
            for topic in (TOPIC, REPLAYED):
                # The records are from 2013: retention would delete them, and segment.ms would roll a segment for every
                # week of their timestamps.
                configs = {"retention.ms": "-1", "segment.ms": str(2**40), "segment.bytes": str(4 << 20)}
                await admin.create_topic(topic, partitions=self._partitions, configs=configs)
        began = time.monotonic()
        await produce_flights(bootstrap, TOPIC, self._flights, "lz4", lambda count: None)
        ends = await end_offsets(bootstrap, TOPIC)
        self._expect(
            sum(ends.values()) == len(self._flights),
            f"{sum(ends.values()):,} of {len(self._flights):,} flights are in {TOPIC}",
            time.monotonic() - began,
        )

    def _archive_with_a_kill(self, bootstrap: str) -> None:
        archive = self._archive / TOPIC
        arguments = (
            *("archive", TOPIC, "--to", str(self._archive), "--bootstrap", bootstrap),
            *("--max-records", str(max(len(self._flights) // MICRO_BATCHES, 1))),
        )
        seconds = self._jobs.kill_when(arguments, lambda: archive.exists() and any(archive.rglob("*.parquet")))
        offsets = archived_offsets(archive)
        self._expect(
            0 < len(offsets) < len(self._flights),
            f"archive killed with kill -9 (driver and JVM): {len(offsets):,} of {len(self._flights):,} flights in it",
            seconds,
        )
        summary = self._jobs.run(*arguments)
        offsets = archived_offsets(archive)
        self._expect(
            len(offsets) == len(set(offsets)) == len(self._flights),
            f"archive resumed: {len(offsets):,} flights, {len(offsets) - len(set(offsets)):,} doubled, "
            f"{len(self._flights) - len(set(offsets)):,} lost",
            summary.seconds,
        )
        differing = hours_that_differ(archive)
        self._expect(differing == 0, f"flights outside the directory of their time_hour: {differing:,}")

    def _snapshot(self, bootstrap: str) -> None:
        output = self._directory / "snapshot"
        summary = self._jobs.run(*("snapshot", "--bootstrap", bootstrap, "--topic", TOPIC, "--output", str(output)))
        last = {flight.key: flight.value for flight in self._flights}
        found = snapshot_rows(output / f"topic={TOPIC}")
        wrong = sum(found.get(key) != value for key, value in last.items())
        self._expect(
            wrong == 0 and len(found) == len(last),
            f"snapshot: the last flight of {len(found):,} of {len(last):,} aircraft, {wrong:,} wrong",
            summary.seconds,
        )

    def _replay(self, bootstrap: str) -> None:
        summary = self._jobs.run(
            *("replay", str(self._archive), "--topic", f"{TOPIC}={REPLAYED}"),
            *("--state", str(self._directory / "replay-state"), "--bootstrap", bootstrap),
        )
        comparison = Comparison(self._flights)
        asyncio.run(consume_flights(bootstrap, REPLAYED, len(self._flights), comparison.take, lambda count: None))
        comparison.finish()
        ends = asyncio.run(end_offsets(bootstrap, REPLAYED))
        self._expect(
            comparison.difference_count == 0 and sum(ends.values()) == len(self._flights),
            f"replay: {comparison.records:,} flights in {REPLAYED}, {comparison.difference_count:,} differences in "
            "key, value, timestamp or order",
            summary.seconds,
        )
        for difference in comparison.differences:
            self._screen.say(f"      {difference}")

    def _audit_archive(self, bootstrap: str) -> None:
        summary = self._jobs.run(
            *("audit", "--archive", str(self._archive), "--topic", TOPIC, "--bootstrap", bootstrap)
        )
        matching = summary.details["matching"]
        self._expect(
            matching == len(self._flights) and summary.details["archive"] == "whole",
            f"audit: {matching:,} records of the archive match the log",
            summary.seconds,
        )

    def _audit_files(self, data_directory: Path) -> None:
        summary = self._jobs.run("audit", "--log-dir", str(data_directory), "--topic", TOPIC, "--topic", REPLAYED)
        self._expect(
            summary.details["findings"] == 0 and summary.records == 2 * len(self._flights),
            f"audit: {summary.records:,} records in {summary.files:,} segments of the stopped broker, "
            f"{summary.details['findings']} findings, {summary.details['gaps']} gaps",
            summary.seconds,
        )

    def _expect(self, is_right: bool, text: str, seconds: float | None = None) -> None:
        line = text if seconds is None else f"{text} ({seconds:.2f} s)"
        if is_right:
            self._screen.done(line)
        else:
            self._is_good = False
            self._screen.failed(line)


@click.command()
@click.option(
    "--rows",
    type=click.IntRange(min=MICRO_BATCHES),
    default=ROWS,
    show_default=True,
    metavar="N",
    help="Only the first N rows of the file.",
)
@click.option("--all", "is_whole", is_flag=True, help="All 336,776 rows (a year); takes several times as long.")
@click.option("--partitions", type=click.IntRange(min=1), default=2, show_default=True, metavar="N")
@click.option("--master", default="local[2]", show_default=True, metavar="URL", help="Spark's master.")
@click.option("--keep", is_flag=True, help="Keep the directory. It is always kept after a failure.")
def main(rows: int, is_whole: bool, partitions: int, master: str, keep: bool) -> None:
    """Send flights through a broker, run a killed archive, a snapshot, a replay and two audits; check each."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # SIGTERM also ends the running job
    screen = Screen()
    directory = Path(tempfile.mkdtemp(prefix="barnabas-pipeline-demo-"))
    began = time.monotonic()
    is_good = False
    try:
        taken = None if is_whole else rows
        is_good = PipelineDemo(directory, screen, rows=taken, partitions=partitions, master=master).run()
    except (BrokerProcessError, TrafficError, JobError, ClientError) as error:
        screen.failed(str(error))
    finally:
        if keep or not is_good:
            screen.say(f"kept: {directory} (data, archive, snapshot, and the logs of broker and jobs)")
        else:
            shutil.rmtree(directory)
    screen.say(f"{'all checks passed' if is_good else 'the demo FAILED'}, {time.monotonic() - began:.1f} s")
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main(prog_name="python -m demo.pipeline")
