"""The demo's steps in order, with their checks. See README.md."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from barnabas import Admin, AdminConfig
from demo.broker_process import BrokerProcess
from demo.files import topic_files
from demo.flights import Flight, load_flights
from demo.screen import Screen
from demo.traffic import consume_flights, end_offsets, first_records_at, produce_flights
from demo.verification import Comparison

TOPIC = "flights"
CLEAN_SHUTDOWN_MARKER = ".kafka_cleanshutdown"

_YEAR_MS = 365 * 24 * 3600 * 1000
_MIB = 1024 * 1024
_INDEPENDENCE_DAY_NOON_MS = int(datetime(2013, 7, 4, 12, tzinfo=UTC).timestamp() * 1000)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a run; `rows` None means all rows."""

    rows: int | None
    partitions: int
    segment_bytes: int
    compression: str


@dataclass(frozen=True, slots=True)
class Rate:
    """One pass over all records."""

    name: str
    records: int
    payload_bytes: int
    seconds: float

    @property
    def row(self) -> tuple[str, int, str, int, str]:
        """Return a row of the table of rates."""
        seconds = max(self.seconds, 1e-9)
        return (
            self.name,
            self.records,
            f"{self.seconds:.2f} s",
            round(self.records / seconds),
            f"{self.payload_bytes / seconds / _MIB:.1f} MiB/s",
        )


class Demo:
    """One run. `run` returns whether every record came back unchanged."""

    def __init__(self, options: Options, directory: Path, screen: Screen) -> None:
        self._options = options
        self._directory = directory
        self._screen = screen
        self._flights: Sequence[Flight] = ()
        self._rates: list[Rate] = []
        self._is_good = True

    def run(self) -> bool:
        """Run all steps. Raises BrokerProcessError, TrafficError or a ClientError when the demo cannot continue."""
        self._load()
        with self._broker() as broker:
            self._check("the broker serves", broker.start_seconds)
            asyncio.run(self._fill(broker.bootstrap))
            resident_mib = broker.resident_mib()
            stop_seconds = broker.stop_cleanly()
        self._check(
            f"SIGTERM: the broker flushed, closed its logs and ended with exit code 0{_mib(resident_mib)}", stop_seconds
        )
        self._expect(
            (broker.data_directory / CLEAN_SHUTDOWN_MARKER).is_file(),
            f"the clean-shutdown file {CLEAN_SHUTDOWN_MARKER} exists",
        )
        files = topic_files(broker.data_directory, TOPIC)
        with self._broker() as broker:
            self._check(
                f"the broker serves again, {sum(entry.segments for entry in files)} segments loaded",
                broker.start_seconds,
            )
            asyncio.run(self._read_back(broker.bootstrap))
            broker.stop_cleanly()
        self._screen.table(
            "Rates (producer, consumer and broker share this machine)",
            ("pass", "records", "time", "records/s", "keys and values"),
            [rate.row for rate in self._rates],
        )
        self._screen.table(
            f"On disk after the stop, in {broker.data_directory}",
            ("partition", "segments", "bytes", "offset index entries", "time index entries", "files"),
            [
                (entry.name, entry.segments, entry.log_bytes, entry.offset_entries, entry.time_entries, entry.files)
                for entry in files
            ],
        )
        return self._is_good

    def _broker(self) -> BrokerProcess:
        return BrokerProcess(self._directory, {"auto.create.topics.enable": "false"})

    def _load(self) -> None:
        began = time.monotonic()
        self._flights = load_flights(self._options.rows)
        self._check(f"{len(self._flights):,} flights unpacked and sorted by time_hour", time.monotonic() - began)

    async def _fill(self, bootstrap: str) -> None:
        """Create the topic; produce and consume at the same time."""
        options = self._options
        async with Admin(AdminConfig(bootstrap=bootstrap)) as admin:
            await admin.create_topic(
                TOPIC,
                partitions=options.partitions,
                configs={
                    "retention.ms": "-1",  # the records are from 2013, older than any retention
                    "segment.bytes": str(options.segment_bytes),
                    "segment.ms": str(
                        10 * _YEAR_MS
                    ),  # segments roll by size alone, not because the timestamps span a year
                },
            )
        comparison = Comparison(self._flights)
        with self._screen.bars(len(self._flights), "produced", "consumed") as (produced, consumed):
            began = time.monotonic()

            async def produce() -> float:
                await produce_flights(bootstrap, TOPIC, self._flights, options.compression, produced)
                return time.monotonic() - began

            async def consume() -> float:
                await consume_flights(bootstrap, TOPIC, len(self._flights), comparison.take, consumed)
                return time.monotonic() - began

            async with asyncio.TaskGroup() as group:
                producing = group.create_task(produce())
                consuming = group.create_task(consume())
        self._rate("produce", producing.result())
        self._rate("consume meanwhile", consuming.result())
        self._compare("consumed while producing", comparison)

    async def _read_back(self, bootstrap: str) -> None:
        """Read everything again after the restart, and look up an offset by time."""
        ends = await end_offsets(bootstrap, TOPIC)
        self._expect(
            sum(ends.values()) == len(self._flights),
            f"the partitions end at {', '.join(f'{end:,}' for _, end in sorted(ends.items()))}: "
            f"{sum(ends.values()):,} records where {len(self._flights):,} were sent",
        )
        comparison = Comparison(self._flights)
        with self._screen.bars(sum(ends.values()), "read back") as (report,):
            began = time.monotonic()
            await consume_flights(bootstrap, TOPIC, sum(ends.values()), comparison.take, report)
            self._rate("read back", time.monotonic() - began)
        self._compare("read back after the restart", comparison)
        await self._look_up(bootstrap, comparison)

    async def _look_up(self, bootstrap: str, comparison: Comparison) -> None:
        timestamp_ms = self._time_to_look_up()
        began = time.monotonic()
        found = await first_records_at(bootstrap, TOPIC, timestamp_ms)
        seconds = time.monotonic() - began
        right = True
        places = []
        for partition, record in sorted(found.items()):
            due = comparison.first_offset_at(partition, timestamp_ms)
            offset = None if record is None else record.offset
            right = right and offset == due and (record is None or record.timestamp >= timestamp_ms)
            places.append(f"{partition}:{'none' if offset is None else f'{offset:,}'}")
            if offset != due:
                places[-1] += f" (expected: {due})"
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
        self._expect(
            right, f"first offset at or after {moment:%Y-%m-%d %H:%M} UTC, by partition: {' '.join(places)}", seconds
        )

    def _time_to_look_up(self) -> int:
        """Return noon of the fourth of July, or the middle of a run that does not reach it."""
        if self._flights[-1].timestamp_ms >= _INDEPENDENCE_DAY_NOON_MS:
            return _INDEPENDENCE_DAY_NOON_MS
        return self._flights[len(self._flights) // 2].timestamp_ms

    def _compare(self, what: str, comparison: Comparison) -> None:
        comparison.finish()
        self._expect(
            comparison.difference_count == 0,
            f"{what}: {comparison.records:,} records with {comparison.keys:,} keys compared, "
            f"{comparison.difference_count:,} differences in key, value, timestamp or order",
        )
        for difference in comparison.differences:
            self._screen.say(f"      {difference}")

    def _rate(self, name: str, seconds: float) -> None:
        payload_bytes = sum(len(flight.key) + len(flight.value) for flight in self._flights)
        self._rates.append(Rate(name, len(self._flights), payload_bytes, seconds))

    def _check(self, text: str, seconds: float) -> None:
        self._expect(True, text, seconds)

    def _expect(self, is_right: bool, text: str, seconds: float | None = None) -> None:
        line = text if seconds is None else f"{text} ({seconds:.2f} s)"
        if is_right:
            self._screen.done(line)
        else:
            self._is_good = False
            self._screen.failed(line)


def _mib(resident_mib: float | None) -> str:
    return "" if resident_mib is None else f"; resident memory {resident_mib:.0f} MiB"
