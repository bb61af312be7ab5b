"""Benchmarks of Spark on Barnabas: `python -m benchmarks.pipeline`, one session on `local[2]`, records of 100 bytes.

    parquet               the same rows from Parquet files, with Spark's own reader
    segments, broker      all columns of format("barnabas"), from the files and from the broker
    ... without payload   .schema("offset long, timestamp timestamp")
    kafka connector       Spark's own format("kafka") from the same broker, if --jars gives its jars
    write by barnabas     key and value of the Parquet rows into a new topic, by format("barnabas")
    write by the kafka connector
                          the same by format("kafka")
    snapshot, stats,
    archive               the whole jobs; rows read
    micro-batches         fixed milliseconds and CPU per micro-batch, in a separate table (micro_batches.py)

The reads write to noop. One extra warm-up round is not counted. CPU is that of Spark's JVM with its Python workers, and
of the broker. Ratios are to the connector's read (or to Parquet) in the same round, because rates of different runs are
not comparable. `--plain` uses the kernel's plain Python twin.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.brokers.system import Barnabas, Running
from benchmarks.pipeline.micro_batches import PARTITIONS, TOPIC, measure_micro_batches, micro_batch_table, spark_cpu_ms
from benchmarks.requests.frames import delete_topic
from benchmarks.requests.kafka_dialect import KafkaDialect, receive_exactly
from benchmarks.requests.records import build_batch
from benchmarks.runs.result_files import add_json_option, write_result
from benchmarks.runs.side_by_side import Columns, Samples, chosen, say, say_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

MASTER = "local[2]"
VALUE_BYTES = 100
BATCH_RECORDS = 500
NO_PAYLOAD = "offset long, timestamp timestamp"
MICRO_BATCHES = "micro-batches"
CPU_COLUMNS = ("spark_us_per_row", "broker_us_per_row")


class Lines:
    """The lines of one session over one filled broker."""

    def __init__(self, spark: SparkSession, running: Running, home: Path, records: int, *, connector: bool) -> None:
        self._spark = spark
        self._running = running
        self._bootstrap = f"{running.host}:{running.port}"
        self._data = str(home / "data")
        self._parquet = str(home / "parquet")
        self._home = home
        self._records = records
        self._connector = connector
        self._runs = 0
        self._from("barnabas").load().write.parquet(self._parquet)

    def measure(self, wanted: str) -> dict[str, Columns]:
        """Measure the lines whose names contain `wanted`."""
        spark = self._spark
        segments = spark.read.format("barnabas").option("subscribe", TOPIC)
        frames: dict[str, Callable[[], DataFrame]] = {
            "parquet": lambda: spark.read.parquet(self._parquet),
            "segments": lambda: segments.load(self._data),
            "segments without payload": lambda: segments.schema(NO_PAYLOAD).load(self._data),
            "broker": lambda: self._from("barnabas").load(),
            "broker without payload": lambda: self._from("barnabas").schema(NO_PAYLOAD).load(),
        }
        if self._connector:
            frames["kafka connector"] = lambda: self._from("kafka").load()
        work: dict[str, Callable[[], object]] = {name: partial(_to_noop, frame) for name, frame in frames.items()}
        work["write by barnabas"] = partial(self._write, "barnabas")
        if self._connector:
            work["write by the kafka connector"] = partial(self._write, "kafka")
        work |= {"snapshot": self._snapshot, "stats": self._stats, "archive": self._archive}
        found = {}
        for name in chosen(list(work), wanted):
            found[name] = self._measured(work[name])
            say_columns(name, found[name])
        return found

    def _from(self, source: str) -> DataFrameReader:
        reader = self._spark.read.format(source).option("kafka.bootstrap.servers", self._bootstrap)
        return reader.option("subscribe", TOPIC)

    def _measured(self, work: Callable[[], object]) -> Columns:
        self._runs += 1
        spark_ms, broker = sum(spark_cpu_ms().values()), self._running.cpu_seconds()
        began = time.perf_counter()
        work()
        seconds = time.perf_counter() - began
        return {
            "rows_per_s": self._records / seconds,
            "spark_us_per_row": (sum(spark_cpu_ms().values()) - spark_ms) * 1e3 / self._records,
            "broker_us_per_row": (self._running.cpu_seconds() - broker) * 1e6 / self._records,
        }

    def _write(self, form: str) -> None:
        topic, dialect = f"written-{self._runs}", KafkaDialect()
        rows = self._spark.read.parquet(self._parquet).select("key", "value")
        with self._running.connect() as connection:
            dialect.create(connection, topic, PARTITIONS)
            options = {"kafka.bootstrap.servers": self._bootstrap, "topic": topic}
            rows.write.format(form).mode("append").options(**options).save()
            stored = sum(dialect.end_offset(connection, topic, partition) for partition in range(PARTITIONS))
            delete_topic(connection, topic)
        if stored != self._records:
            raise RuntimeError(f"{stored} of {self._records} records were written by {form}")

    def _snapshot(self) -> None:
        from barnabas.pipeline.jobs.record_source import RecordSource
        from barnabas.pipeline.jobs.snapshot import SnapshotOptions, run

        source = RecordSource(log_dirs=(Path(self._data),), topics=(TOPIC,))
        run(self._spark, SnapshotOptions(source, str(self._home / f"snapshot-{self._runs}")))

    def _stats(self) -> None:
        from barnabas.pipeline.jobs.record_source import RecordSource
        from barnabas.pipeline.jobs.stats_report import StatsOptions, run

        run(self._spark, StatsOptions(RecordSource(log_dirs=(Path(self._data),), topics=(TOPIC,))))

    def _archive(self) -> None:
        from barnabas.pipeline.jobs.archive import ArchiveOptions, run

        options = {"path": self._data, "subscribe": TOPIC, "startingOffsets": "earliest"}
        done = run(self._spark, ArchiveOptions(str(self._home / f"archive-{self._runs}"), options))
        if done.records != self._records:
            raise RuntimeError(f"{done.records} of {self._records} records were archived")


def fill(running: Running, records: int) -> int:
    """Create the topic and produce; return the number of records in it."""
    dialect = KafkaDialect()
    batch = build_batch(BATCH_RECORDS, VALUE_BYTES)
    frames = [dialect.produce(TOPIC, batch.data, partition=partition) for partition in range(PARTITIONS)]
    rounds = max(records // (BATCH_RECORDS * PARTITIONS), 1)
    with running.connect() as connection:
        dialect.say_hello(connection)
        dialect.create(connection, TOPIC, PARTITIONS, {"segment.bytes": str(64 << 20)})
        for _ in range(rounds):
            for frame in frames:
                connection.sendall(frame)
            for _ in frames:
                receive_exactly(connection, int.from_bytes(receive_exactly(connection, 4), "big"))
        there = sum(dialect.end_offset(connection, TOPIC, partition) for partition in range(PARTITIONS))
    if there != rounds * BATCH_RECORDS * PARTITIONS:
        raise RuntimeError(f"{there} records are stored, not {rounds * BATCH_RECORDS * PARTITIONS}")
    return there


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    if options.plain:
        os.environ["BARNABAS_KERNEL"] = "python"
    home = Path(tempfile.mkdtemp(prefix="barnabas-bench-pipeline-", dir=options.directory))
    samples: Samples = defaultdict(list)
    try:
        with Barnabas(["log.retention.ms=-1"]).start(home) as running:
            records = fill(running, options.records)
            spark = _session(home, options.jars, unix_sockets=options.unix_sockets)
            lines = Lines(spark, running, home, records, connector=options.jars is not None)
            for number in range(options.rounds + 1):
                say(f"round {number} of {options.rounds}" if number else "warm-up")
                measured = lines.measure(options.lines)
                if number:
                    for name, columns in measured.items():
                        samples[name].append(columns)
            bootstrap, connector = f"{running.host}:{running.port}", options.jars is not None
            micro_batches = []
            if options.lines in MICRO_BATCHES:
                micro_batches = measure_micro_batches(spark, bootstrap, records, home, connector=connector)
            spark.stop()
    finally:
        shutil.rmtree(home)
    print(table(samples))
    if micro_batches:
        print(f"\n{micro_batch_table(micro_batches)}")
    samples |= {f"{MICRO_BATCHES}: {each.kind}, {each.source}": [each.columns()] for each in micro_batches}
    write_result(options.json, "benchmarks.pipeline", options, samples)
    return 0


def table(samples: Samples) -> str:
    """Render medians with minimum and maximum, and the ratio to the connector (without it, to Parquet) by round."""
    base = "kafka connector" if "kafka connector" in samples else "parquet"
    rows = [f"| line | rows/s | to {base} | Spark's CPU us a row | broker's CPU us a row |", "|---|---|---|---|---|"]
    for name, found in samples.items():
        rates = [each["rows_per_s"] for each in found]
        spread = f"{median(rates):,.0f} ({min(rates):,.0f} to {max(rates):,.0f})"
        ratios = [rate / each["rows_per_s"] for rate, each in zip(rates, samples.get(base, []), strict=False)]
        ratio = f"{median(ratios):.2f}" if ratios else ""
        cpu = " | ".join(f"{median(each[column] for each in found):.2f}" for column in CPU_COLUMNS)
        rows.append(f"| {name} | {spread} | {ratio} | {cpu} |")
    return "\n".join(rows)


def _to_noop(frame: Callable[[], DataFrame]) -> None:
    frame().write.format("noop").mode("overwrite").save()


def _session(home: Path, jars: Path | None, *, unix_sockets: bool) -> SparkSession:
    from pyspark.sql import SparkSession

    from barnabas.pipeline.spark.session import ROWS_TO_PYTHON, local_tasks

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master(MASTER)
        .appName("barnabas-bench")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.local.dir", str(home / "local"))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", str(local_tasks(MASTER)))  # as the jobs' own sessions
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", str(ROWS_TO_PYTHON))
        .config("spark.python.unix.domain.socket.enabled", str(unix_sockets).lower())
        .config("spark.log.level", "ERROR")
    )
    if jars is not None:
        builder = builder.config("spark.jars", ",".join(str(path) for path in sorted(jars.glob("*.jar"))))
    return builder.getOrCreate()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline", description=__doc__)
    parser.add_argument(
        "--records",
        type=int,
        default=400_000,
        help="records in the topic (default 400,000; use 4,000,000 on a quiet machine)",
    )
    parser.add_argument("--lines", metavar="TEXT", default="", help="measure only lines whose name contains TEXT")
    parser.add_argument("--rounds", type=int, default=2, help="number of measurements of each line (default 2)")
    parser.add_argument("--jars", type=Path, metavar="DIR", help="directory with the jars of Spark's Kafka connector")
    parser.add_argument(
        "--unix-sockets",
        action="store_true",
        help="reach Python workers over Unix sockets, not over TCP, where each task waits for an acknowledgement",
    )
    parser.add_argument("--plain", action="store_true", help="without the compiled kernel")
    parser.add_argument("--directory", type=Path, default=None, help="where data is written (default: the system's)")
    add_json_option(parser, "pipeline")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
