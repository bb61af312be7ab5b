"""Benchmark of recovery: seconds until a killed broker serves its log again (`python -m benchmarks.recovery`).

One topic with a few partitions is filled with records of 1 KiB, none of them flushed. The broker is killed with SIGKILL
and started on the same directory:

    seconds        from exec to the first answer with the right end offset of every partition
    cpu_seconds    user and system time of the new process until then

With --kafka-jars, Apache Kafka is measured in the same rounds with the same batches. The data is in the page cache in
both cases: SIGKILL ends the process, not the machine.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import median

from benchmarks.brokers.apache_kafka import ApacheKafka
from benchmarks.brokers.system import Barnabas, Running, System
from benchmarks.requests.kafka_dialect import KafkaDialect, receive_exactly
from benchmarks.requests.records import build_full_batch
from benchmarks.runs.result_files import DIRECTORY, add_json_option, write_result

TOPIC = "recovered"
BATCH_BYTES = 1 << 20
VALUE_BYTES = 1024
ANSWER_SECONDS_MAX = 600.0

Samples = dict[str, list[dict[str, float]]]


def measure(system: System, directory: Path, total_bytes: int, partitions: int) -> dict[str, float]:
    """Fill, kill and restart one broker on an empty directory. Raises RuntimeError when an end offset stays wrong."""
    running = system.start(directory)
    try:
        ends = fill(running, system.dialect, total_bytes, partitions)
    finally:
        running.kill()
    restarted = system.restart(directory)
    with restarted:
        await_end_offsets(restarted, system.dialect, ends)
        seconds = time.monotonic() - restarted.started
        cpu_seconds = restarted.cpu_seconds()
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, "start_seconds": restarted.start_seconds}


def fill(running: Running, dialect: KafkaDialect, total_bytes: int, partitions: int) -> list[int]:
    """Produce `total_bytes` of batches, spread evenly; return the end offset of each partition."""
    batch = build_full_batch(BATCH_BYTES, VALUE_BYTES)
    requests = [dialect.produce(TOPIC, batch.data, partition=partition) for partition in range(partitions)]
    rounds = max(1, total_bytes // (len(batch.data) * partitions))
    with running.connect() as connection:
        dialect.say_hello(connection)
        dialect.create(connection, TOPIC, partitions)
        await_end_offsets(running, dialect, [0] * partitions)
        for _ in range(rounds):
            for request in requests:
                connection.sendall(request)
                receive_exactly(connection, int.from_bytes(receive_exactly(connection, 4), "big"))
        ends = [dialect.end_offset(connection, TOPIC, partition) for partition in range(partitions)]
    if ends != [rounds * batch.record_count] * partitions:
        raise RuntimeError(f"end offsets {ends} after {rounds * batch.record_count} records per partition")
    return ends


def await_end_offsets(running: Running, dialect: KafkaDialect, ends: list[int]) -> None:
    """Poll until every partition reports its end offset: Kafka listens before its partitions have a leader."""
    give_up = time.monotonic() + ANSWER_SECONDS_MAX
    found: object = None
    while time.monotonic() < give_up:
        try:
            with running.connect() as connection:
                dialect.say_hello(connection)
                found = [dialect.end_offset(connection, TOPIC, partition) for partition in range(len(ends))]
        except (TimeoutError, RuntimeError, EOFError, OSError) as error:
            found = error
        if found == ends:
            return
        time.sleep(0.005)
    raise RuntimeError(f"after {ANSWER_SECONDS_MAX:.0f} s the end offsets are {found}, not {ends}")


def render(samples: Samples) -> str:
    """Render a Markdown table; a cell is the median of all rounds with minimum and maximum."""
    lines = ["| broker | seconds to the right end offsets | CPU seconds |", "| --- | --- | --- |"]
    for system, rounds in samples.items():
        cells = []
        for column in ("seconds", "cpu_seconds"):
            values = [each[column] for each in rounds]
            cells.append(f"**{median(values):.2f}** ({min(values):.2f} - {max(values):.2f})")
        lines.append(f"| {system} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    systems: list[System] = [Barnabas(options.set)]
    if options.kafka_jars is not None:
        systems.append(ApacheKafka(options.kafka_jars))
    options.directory.mkdir(parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix="barnabas-recovery-", dir=options.directory))
    samples: Samples = defaultdict(list)
    try:
        for number in range(options.rounds):
            for system in systems:
                print(f"round {number + 1} of {options.rounds}: {system.name}", file=sys.stderr, flush=True)
                place = home / f"{number}-{system.name.replace(' ', '-')}"
                place.mkdir()
                samples[system.name].append(measure(system, place, int(options.gigabytes * 1e9), options.partitions))
                shutil.rmtree(place)
    finally:
        shutil.rmtree(home)
    print(f"Recovery of {options.gigabytes:g} GB in {options.partitions} partitions after kill -9\n")
    print(render(samples))
    write_result(options.json, "benchmarks.recovery", options, samples)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recovery", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="number of measurements of each broker (default 3)")
    parser.add_argument("--gigabytes", type=float, default=1.0, help="amount of unflushed data (default 1)")
    parser.add_argument("--partitions", type=int, default=4, help="number of partitions of the topic (default 4)")
    parser.add_argument("--set", action="append", default=[], metavar="K=V", help="a property of Barnabas")
    parser.add_argument("--directory", type=Path, default=DIRECTORY, help="where data is written")
    parser.add_argument("--kafka-jars", type=Path, metavar="DIR", help="measure Apache Kafka too (needs java)")
    add_json_option(parser, "recovery")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
