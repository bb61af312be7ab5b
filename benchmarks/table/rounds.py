"""Run of all lines in alternating rounds, each with a new broker on an empty directory; keeps every sample."""

from __future__ import annotations

import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks.brokers.system import System
from benchmarks.runs.page_cache import PageCacheFiller
from benchmarks.runs.programs import Programs
from benchmarks.table.beside_compaction import one_record_beside_compaction
from benchmarks.table.compaction import compaction
from benchmarks.table.floor import added, measure_floor
from benchmarks.table.lines import DURABLE_PARTITIONS, Bench, Columns, Workload, footprint, limits, smallest_server

CONNECTIONS = (1, 8, 64)
BARNABAS = "Barnabas"

Samples = dict[str, list[Columns]]
"""Line -> one entry per round. Lines of systems other than Barnabas are prefixed with the name."""


def line_of(system: System, line: str) -> str:
    """Return the key of a system's line."""
    return line if system.name == BARNABAS else f"{system.name}: {line}"


def run_rounds(
    systems: Sequence[System],
    programs: Programs,
    work: Workload,
    *,
    rounds: int,
    directory: Path,
    fill_page_cache: bool,
    say: Callable[[str], None],
) -> Samples:
    """Measure all lines. `directory` is on the file system under test; the run removes its files at the end."""
    samples: Samples = defaultdict(list)
    home = Path(tempfile.mkdtemp(prefix="barnabas-bench-", dir=directory))
    try:
        refill: Callable[[], None] = _nothing
        if fill_page_cache:
            say("filling the page cache")
            refill = PageCacheFiller(home / "fill").refill
        for number in range(rounds):
            place = home / f"round-{number}"
            place.mkdir()
            say(f"round {number + 1} of {rounds}: limits")
            for line, columns in limits(programs, place, work, refill).items():
                samples[line].append(columns)
            frame = systems[0].dialect.produce("small", work.small_batch.data)
            for line, columns in smallest_server(programs, frame, place, work, CONNECTIONS).items():
                samples[line].append(columns)
            say(f"round {number + 1} of {rounds}: floor")
            for line, columns in measure_floor(programs, place, work, CONNECTIONS, refill).items():
                samples[line].append(columns)
            say(f"round {number + 1} of {rounds}: compaction")
            refill()
            samples["compaction"].append(compaction(place / "compaction", work.compacted_bytes))
            for system in systems:
                say(f"round {number + 1} of {rounds}: {system.name}")
                home_of_system = place / system.name.replace(" ", "-")
                home_of_system.mkdir()
                _one_round(system, programs, work, home_of_system, refill, samples, say)
                shutil.rmtree(home_of_system)
            shutil.rmtree(place)
    finally:
        shutil.rmtree(home)
    return samples


def _one_round(
    system: System,
    programs: Programs,
    work: Workload,
    place: Path,
    refill: Callable[[], None],
    samples: Samples,
    say: Callable[[str], None],
) -> None:
    refill()
    with system.start(place) as running:
        samples[line_of(system, "footprint")].append(footprint(running))
        bench = Bench(running, system.dialect, programs, place, work)
        bench.create_topics()
        bench.warm(system.warm_gigabytes, system.warm_seconds)
        lines: list[tuple[str, Callable[[], Columns]]] = [("produce", bench.produce), ("fetch", bench.fetch)]
        for connections in CONNECTIONS:
            lines.append((f"one_record_{connections}", partial(bench.one_record, connections)))
        for partitions in DURABLE_PARTITIONS:
            for connections in CONNECTIONS:
                lines.append((f"durable_{partitions}_{connections}", partial(bench.durable, connections, partitions)))

        def measure(line: str, run: Callable[[], Columns]) -> None:
            refill()
            columns = run()
            say(f"  {line}: " + ", ".join(f"{name}={value:.4g}" for name, value in columns.items()))
            samples[line_of(system, line)].append(columns)
            floor = samples.get(f"floor_{line.removeprefix('one_record_')}")
            if floor is not None:
                samples[line_of(system, f"added_{line}")].append(added(columns, floor[-1]))

        for line, run in lines:
            measure(line, run)
        samples[line_of(system, "loaded")].append(bench.loaded())
        measure("one_record_8_compacting", partial(one_record_beside_compaction, bench))


def _nothing() -> None:
    return
