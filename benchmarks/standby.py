"""Produces that wait for a second machine or for the disk: a standby with standby.min.acks=1, beside Kafka's replicas.

    python -m benchmarks.standby [--kafka-jars DIR]

    no standby               acks=all is answered by the broker alone
    standby follows          a standby copies, and no answer waits for it
    standby.min.acks=1       each answer waits for the standby
    flush.messages=1         each answer waits for the broker's own disk
    flush.acks.all=true      the same, since the producer asks for acks=all
    the same, acks=1         such a topic with acks=1, which waits for no disk
    two replicas             Apache Kafka: two brokers, min.insync.replicas=2

Each connection has one request in flight, of one record of --value-bytes. The clients run in one Python process, which
is the same for all systems. All processes are on this machine: there is no network between them.
"""

from __future__ import annotations

import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles

from benchmarks.brokers.apache_kafka import ApacheKafka
from benchmarks.brokers.system import Barnabas, Running, cpu_seconds_of, free_port, start_process
from benchmarks.requests.frames import Topic, create_topic, produce_frame
from benchmarks.requests.kafka_dialect import KafkaDialect, receive_exactly
from benchmarks.requests.records import build_batch
from benchmarks.runs.result_files import write_result
from benchmarks.runs.side_by_side import Columns, Samples, render_samples, say, say_columns, side_by_side_options

TOPIC = "replicated"
LINES = {"1 connection": 1, "16 connections": 16}
READY_SECONDS_MAX = 60.0
ACKS_ALL = -1
_ERROR_AT = 4 + 1 + 1 + 16 + 1 + 4
"""Of the first partition in an answer to Produce 13, after the size: header, topics, topic id, partitions, index."""

COLUMNS = (
    ("requests/s", "requests_per_s", 1.0, "{:,.0f}"),
    ("p50, ms", "p50_ms", 1.0, "{:.2f}"),
    ("p99, ms", "p99_ms", 1.0, "{:.2f}"),
    ("CPU us a request, both brokers", "cpu_us", 1.0, "{:.0f}"),
)


class Alone:
    """Barnabas with a topic's configs."""

    def __init__(
        self,
        settings: Sequence[str],
        configs: Mapping[str, str] = {},
        *,
        has_standby: bool = False,
        acks: int = ACKS_ALL,
    ) -> None:
        self.acks = acks
        self._system = Barnabas(list(settings))
        self._settings = settings
        self._configs = configs
        self._has_standby = has_standby

    @contextmanager
    def running(self, directory: Path) -> Iterator[tuple[Running, Topic, list[int]]]:
        """Return the broker, the topic, and the processes of both sides."""
        with self._system.start(directory) as broker:
            pids = [broker.pid]
            standby = self._start_standby(broker, directory) if self._has_standby else None
            try:
                with broker.connect() as connection:
                    topic = create_topic(connection, TOPIC, 1, self._configs)
                    until_accepted(connection, topic)
                yield broker, topic, [*pids, *([] if standby is None else [standby.pid])]
            finally:
                if standby is not None:
                    standby.terminate()
                    standby.wait()

    def _start_standby(self, broker: Running, directory: Path) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "barnabas", "standby", "--of", f"{broker.host}:{broker.port}"]
        command += ["--data", str(directory / "standby"), "--set", f"listeners=PLAINTEXT://127.0.0.1:{free_port()}"]
        for setting in ("metrics.listener=", *self._settings):
            command += ["--set", setting]
        with (directory / "standby.log").open("wb") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


class TwoKafkas:
    """Apache Kafka with two brokers, of which the first is the controller and the leader."""

    acks = ACKS_ALL

    def __init__(self, jars: Path) -> None:
        shared = ("offsets.topic.replication.factor=2",)
        self._first = ApacheKafka(jars, properties=shared)
        self._jars = jars

    @contextmanager
    def running(self, directory: Path) -> Iterator[tuple[Running, Topic, list[int]]]:
        """Return the leader, the topic, and both processes."""
        first, second = directory / "first", directory / "second"
        first.mkdir()
        second.mkdir()
        with self._first.start(first) as leader, self._follow(first, second) as follower:
            give_up = time.monotonic() + READY_SECONDS_MAX
            while True:
                try:
                    with leader.connect() as connection:
                        topic = create_topic(connection, TOPIC, 1, {"min.insync.replicas": "2"}, (1, 2))
                        until_accepted(connection, topic)
                    break
                except RuntimeError:  # the second broker has not registered yet
                    if time.monotonic() > give_up:
                        raise
                    time.sleep(0.2)
            yield leader, topic, [leader.pid, follower.pid]

    def _follow(self, first: Path, second: Path) -> Running:
        lines = dict(line.split("=", 1) for line in (first / "server.properties").read_text().splitlines() if line)
        port = free_port()
        lines |= {
            "process.roles": "broker",
            "node.id": "2",
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "log.dirs": str(second / "data"),
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        }
        properties = second / "server.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        meta = dict(
            line.split("=", 1)
            for line in (first / "data" / "meta.properties").read_text().splitlines()
            if not line.startswith("#")
        )
        java = ["java", "-cp", f"{self._jars}/*"]
        storage_tool = [*java, "kafka.tools.StorageTool", "format", "-t", meta["cluster.id"], "-c", str(properties)]
        subprocess.run(storage_tool, capture_output=True, check=True)
        return start_process(
            ["java", "-Xmx1G", "-cp", f"{self._jars}/*", "kafka.Kafka", str(properties)], second, port, KafkaDialect()
        )


Way = Alone | TwoKafkas


def main() -> int:
    """Measure all rounds, print the table and write the JSON file."""
    parser = side_by_side_options("standby", __doc__)
    parser.add_argument("--value-bytes", type=int, default=100, metavar="N", help="size of a record (default 100)")
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix="barnabas-bench-", dir=options.directory))
    ways: dict[str, Way] = {}
    if not options.kafka_only:
        required = [*options.set, "standby.min.acks=1"]
        ways |= {
            "no standby": Alone(options.set),
            "standby follows": Alone(options.set, has_standby=True),
            "standby.min.acks=1": Alone(required, has_standby=True),
            "flush.messages=1": Alone(options.set, {"flush.messages": "1"}),
            "flush.acks.all=true": Alone(options.set, {"flush.acks.all": "true"}),
            "flush.acks.all=true, acks=1": Alone(options.set, {"flush.acks.all": "true"}, acks=1),
        }
    if options.kafka_jars is not None:
        ways["Apache Kafka: two replicas"] = TwoKafkas(options.kafka_jars)
    samples: Samples = {}
    try:
        for number in range(options.rounds):
            for name, way in list(ways.items())[:: -1 if number % 2 else 1]:
                lines = {each: count for each, count in LINES.items() if options.lines in f"{name}: {each}"}
                if not lines:
                    continue
                say(f"round {number + 1} of {options.rounds}: {name}")
                directory = home / f"{number}-{name.replace(' ', '-').replace(':', '').replace(',', '')}"
                directory.mkdir()
                warm = options.warm if isinstance(way, TwoKafkas) else 1.0
                with way.running(directory) as (broker, topic, pids):
                    for line, count in lines.items():
                        frame = produce_frame(topic, [0], build_batch(1, options.value_bytes).data, acks=way.acks)
                        produce(broker, frame, count, min(warm, options.warm), pids)
                        columns = produce(broker, frame, count, options.seconds, pids)
                        say_columns(line, columns)
                        samples.setdefault(f"{name}: {line}", []).append(columns)
                shutil.rmtree(directory)
    finally:
        shutil.rmtree(home)
    print(render_samples(samples, COLUMNS))
    write_result(options.json, "benchmarks.standby", options, samples)
    return 0


def produce(broker: Running, frame: bytes, connections: int, seconds: float, pids: Sequence[int]) -> Columns:
    """Produce on some connections, each with one request in flight; raise RuntimeError on an error code."""
    opened = [broker.connect() for _ in range(connections)]
    delays: list[float] = []
    try:
        with selectors.DefaultSelector() as selector:
            sent: dict[socket.socket, float] = {}
            for each in opened:
                selector.register(each, selectors.EVENT_READ)
            cpu = sum(map(cpu_seconds_of, pids))
            started = now = time.monotonic()
            for each in opened:
                sent[each] = time.monotonic()
                each.sendall(frame)
            while sent:
                for key, _ in selector.select():
                    each = next(found for found in opened if found is key.fileobj)
                    ensure_stored(receive_answer(each))
                    now = time.monotonic()
                    delays.append(now - sent.pop(each))
                    if now - started < seconds:
                        sent[each] = now
                        each.sendall(frame)
            cpu = sum(map(cpu_seconds_of, pids)) - cpu
    finally:
        for each in opened:
            each.close()
    cuts = quantiles(delays, n=100)
    return {
        "requests_per_s": len(delays) / (now - started),
        "p50_ms": 1000 * cuts[49],
        "p99_ms": 1000 * cuts[98],
        "cpu_us": 1e6 * cpu / len(delays),
    }


def until_accepted(connection: socket.socket, topic: Topic) -> None:
    """Produce with acks=all until that is accepted: a second machine follows a new topic after a moment."""
    frame = produce_frame(topic, [0], build_batch(1, 1).data, acks=ACKS_ALL)
    give_up = time.monotonic() + READY_SECONDS_MAX
    while True:
        connection.sendall(frame)
        try:
            ensure_stored(receive_answer(connection))
            return
        except RuntimeError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.05)


def receive_answer(connection: socket.socket) -> bytes:
    """Return an answer after its size."""
    return receive_exactly(connection, int.from_bytes(receive_exactly(connection, 4), "big"))


def ensure_stored(answer: bytes) -> None:
    """Raise RuntimeError if an answer to Produce has an error code."""
    error = int.from_bytes(answer[_ERROR_AT : _ERROR_AT + 2], "big", signed=True)
    if error:
        raise RuntimeError(f"produce: error {error}")


if __name__ == "__main__":
    sys.exit(main())
