"""Runs of native/stream.c: a producer by the clock and consumers that long-poll. Latency counts from the due moment."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.requests.frames import Topic, end_offsets, produce_frame
from benchmarks.requests.records import build_batch
from benchmarks.runs.programs import Programs
from benchmarks.runs.side_by_side import Columns, Round

STREAM_COLUMNS = (
    ("p50, ms", "p50_us", 1e-3, "{:.2f}"),
    ("p99, ms", "p99_us", 1e-3, "{:.2f}"),
    ("p99.9, ms", "p999_us", 1e-3, "{:.2f}"),
    ("max, ms", "max_us", 1e-3, "{:.1f}"),
    ("produce p50, ms", "produce_p50_us", 1e-3, "{:.2f}"),
    ("records/s", "records_per_s", 1.0, "{:,.0f}"),
    ("broker CPU us a record", "cpu_us_per_record", 1.0, "{:.0f}"),
    ("fetches a record", "fetches_per_record", 1.0, "{:.2f}"),
    ("generator CPU us a record", "generator_us_per_record", 1.0, "{:.0f}"),
    ("answers in a session, %", "session_share", 100.0, "{:.0f}"),
    ("sent late, p99, ms", "late_p99_us", 1e-3, "{:.2f}"),
)
"""Columns for `render_samples`."""


@dataclass(frozen=True, slots=True)
class StreamLine:
    """One line. The `active` partitions of `partitions` get records in turn; consumers fetch all partitions."""

    name: str
    rate: int
    consumers: int
    partitions: int = 1
    active: int = 1
    value_bytes: int = 100
    with_sessions: bool = False


class StreamRun:
    """Runs of one line on a running broker."""

    def __init__(self, round_: Round, programs: Programs, line: StreamLine, topic: Topic) -> None:
        """`topic` has the line's number of partitions."""
        self._round = round_
        self._programs = programs
        self._line = line
        self._topic = topic
        batch = build_batch(1, line.value_bytes).data
        # Spread over the topic, as active partitions are in practice.
        numbers = [index * line.partitions // line.active for index in range(line.active)]
        frames = [(number, produce_frame(topic, [number], batch)) for number in numbers]
        self._actives = struct.pack(">i", line.active) + b"".join(
            struct.pack(">ii", number, len(frame)) + frame for number, frame in frames
        )

    def script(self, ends: Sequence[int]) -> bytes:
        """Return the script of a run that starts at these log end offsets."""
        return self._topic.topic_id + struct.pack(f">i{len(ends)}q", len(ends), *ends) + self._actives

    def measure(self, seconds: float) -> Columns:
        """Run the line for that time. Raises RuntimeError unless every record was stored and received."""
        line, running = self._line, self._round.running
        with running.connect() as connection:
            before = end_offsets(connection, self._topic.name, line.partitions)
            script = self._round.directory / "stream-script"
            script.write_bytes(self.script(before))
            cpu = running.cpu_seconds()
            done = self._programs.stream(
                running.host,
                running.port,
                script,
                rate=line.rate,
                seconds=seconds,
                consumers=line.consumers,
                with_sessions=line.with_sessions,
            )
            cpu = running.cpu_seconds() - cpu
            stored = sum(end_offsets(connection, self._topic.name, line.partitions)) - sum(before)
        if stored != done["records"] or done["received"] != done["records"] * line.consumers:
            raise RuntimeError(f"{line.name}: {done['records']} sent, {stored} stored, {done['received']} received")
        columns = {
            "records_per_s": done["records"] / done["seconds"],
            "cpu_us_per_record": cpu / done["records"] * 1e6,
            "fetches_per_record": done["fetches"] / done["records"],
            "generator_us_per_record": done["cpu_seconds"] / done["records"] * 1e6,
            "session_share": done["session_answers"] / max(1, done["fetches"]),
        }
        names = ("p50_us", "p99_us", "p999_us", "max_us", "late_p99_us", "produce_p50_us", "produce_p99_us")
        return columns | {name: done[name] for name in names}
