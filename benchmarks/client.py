"""Our producer and consumer beside aiokafka and confluent-kafka: `python -m benchmarks.client`.

    produce by ..., consume by ...     records of 100 bytes, of one partition, acks=all, uncompressed

Barnabas                     `Producer.send` with a future for each record, and `Consumer.poll`
Barnabas' send_values        many records in one call
Barnabas' Connection         batches by one connection alone: the floor of a client above it
aiokafka, confluent-kafka    the same calls of theirs; left out where they are not installed

Each runs in a process of its own (runs/clients.py), all of a round on one broker, in turn. CPU is the client's and the
broker's, per record.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping

from benchmarks.brokers.system import Barnabas
from benchmarks.runs.clients import CONSUMERS, LIBRARIES, PRODUCERS, is_installed
from benchmarks.runs.side_by_side import (
    Columns,
    Round,
    chosen,
    in_turn,
    run_and_report,
    say,
    say_columns,
    side_by_side_options,
)

VALUE_BYTES = 100
WARM_SHARE = 0.05
COLUMNS = (
    ("records/s", "records_per_s", 1.0, "{:,.0f}"),
    ("seconds", "seconds", 1.0, "{:.2f}"),
    ("client CPU us a record", "client_us_per_record", 1.0, "{:.2f}"),
    ("broker CPU us a record", "broker_us_per_record", 1.0, "{:.2f}"),
)


def all_lines() -> list[tuple[str, str]]:
    """Return (work, client) of all lines: each consumer reads what the round's first producer has written."""
    return [("produce", client) for client in PRODUCERS] + [("consume", client) for client in CONSUMERS]


def line_names() -> list[str]:
    """Return the names of our own lines, which another commit can be compared by."""
    return [f"{work} by {client}" for work, client in all_lines() if client not in LIBRARIES]


def measure_lines(round_: Round, lines: list[tuple[str, str]], records: int) -> Mapping[str, Columns]:
    """Measure all lines on one broker."""
    running, dialect = round_.running, round_.system.dialect

    def run(client: str, work: str, topic: str, count: int) -> dict[str, float]:
        bootstrap = f"{running.host}:{running.port}"
        command = [sys.executable, "-m", "benchmarks.runs.clients", client, work, bootstrap, topic]
        cpu = running.cpu_seconds()
        done = subprocess.run([*command, str(count), str(VALUE_BYTES)], stdout=subprocess.PIPE, check=True)
        found: dict[str, float] = json.loads(done.stdout)
        return found | {"broker_cpu_seconds": running.cpu_seconds() - cpu}

    found = {}
    with running.connect() as connection:
        dialect.create(connection, "warm")
        dialect.create(connection, "read")
        run("Barnabas", "produce", "warm", max(1, int(records * WARM_SHARE)))
        if any(work == "consume" for work, _ in lines):
            run("Barnabas", "produce", "read", records)
        for number, (work, client) in enumerate(in_turn(lines, round_.number)):
            topic = "read"
            if work == "produce":
                topic = f"written-{number}"
                dialect.create(connection, topic)
            done = run(client, work, topic, records)
            if (stored := dialect.end_offset(connection, topic)) != records + 1:
                raise RuntimeError(f"{work} by {client}: {records + 1} records were sent, {stored} are stored")
            columns = {
                "seconds": done["seconds"],
                "records_per_s": records / done["seconds"],
                "client_us_per_record": done["cpu_seconds"] / records * 1e6,
                "broker_us_per_record": done["broker_cpu_seconds"] / records * 1e6,
            }
            found[f"{work} by {client}"] = columns
            say_columns(f"{work} by {client}", columns)
    return found


def main(arguments: list[str]) -> int:
    """Run with these arguments."""
    parser = side_by_side_options("client", __doc__)
    parser.add_argument("--records", type=int, default=300_000, help="records of each line (default 300,000)")
    options = parser.parse_args(arguments)
    names = chosen([f"{work} by {client}" for work, client in all_lines()], options.lines)
    lines = [(work, client) for work, client in all_lines() if f"{work} by {client}" in names]
    for client in {client for _, client in lines if not is_installed(client)}:
        say(f"left out, because it is not installed: {client}")
    lines = [(work, client) for work, client in lines if is_installed(client)]
    return run_and_report(
        "client",
        options,
        [Barnabas(options.set)],
        lambda round_: measure_lines(round_, lines, options.records),
        COLUMNS,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
