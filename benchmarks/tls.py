"""Cost of TLS: `python -m benchmarks.tls`, with --kafka-jars beside Apache Kafka in the same rounds.

    produce     requests of 1 MiB with records of 1 KiB, acks=1, four in flight, over PLAINTEXT and over SSL
    fetch       the same records, 1 MiB at a time, from the page cache
    handshakes  connections with a full handshake (P-256, TLS 1.3) and one request each, from four threads

CPU time is the broker's; 1 GB is 10^9 bytes of requests or answers. The client is Python: rates are those of the pair,
on cores that it shares with the broker.
"""

from __future__ import annotations

import argparse
import shutil
import socket
import ssl
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from barnabas.clients.security.authority import Authority
from benchmarks.brokers.apache_kafka import ApacheKafka
from benchmarks.brokers.system import Running, free_port, start_process
from benchmarks.requests.kafka_dialect import KafkaDialect, receive_exactly
from benchmarks.requests.records import Batch, build_full_batch
from benchmarks.runs.result_files import DIRECTORY, add_json_option, write_result

REQUEST_BYTES = 1 << 20
VALUE_BYTES = 1024
IN_FLIGHT = 4
THREADS = 4
PROTOCOLS = ("PLAINTEXT", "SSL")

Samples = dict[tuple[str, str, str], list[dict[str, float]]]


class Certificates:
    """An authority, the broker's key store and the client's context."""

    def __init__(self, directory: Path) -> None:
        authority = Authority("benchmark", days=1)
        self.keystore = directory / "broker.pem"
        self.keystore.touch(mode=0o600)
        self.keystore.write_text(authority.server(["127.0.0.1"], days=1))
        self.client = ssl.create_default_context(cadata=authority.certificate)
        self.properties = ("ssl.keystore.type=PEM", f"ssl.keystore.location={self.keystore}")


class Broker:
    """A running system with a PLAINTEXT and an SSL listener."""

    def __init__(self, running: Running, tls_port: int, certificates: Certificates) -> None:
        self.running = running
        self._ports = {"PLAINTEXT": running.port, "SSL": tls_port}
        self._context = certificates.client

    def connect(self, protocol: str) -> socket.socket:
        connection = socket.create_connection((self.running.host, self._ports[protocol]), timeout=60)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if protocol == "SSL":
            return self._context.wrap_socket(connection, server_hostname="127.0.0.1")
        return connection


def start_barnabas(directory: Path, certificates: Certificates) -> Broker:
    port, tls_port = free_port(), free_port()
    settings = (
        f"listeners=PLAINTEXT://127.0.0.1:{port},SSL://127.0.0.1:{tls_port}",
        "metrics.listener=127.0.0.1:0",
        f"log.dirs={directory / 'data'}",
        *certificates.properties,
    )
    command = [sys.executable, "-m", "barnabas", "serve", "--log-level", "warning"]
    for setting in settings:
        command += ["--set", setting]
    return Broker(start_process(command, directory, port, KafkaDialect()), tls_port, certificates)


def start_kafka(directory: Path, certificates: Certificates, jars: Path) -> Broker:
    tls_port = free_port()
    # Kafka maps the controller's listener by itself only where all listeners are PLAINTEXT.
    protocols = "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT"
    kafka = ApacheKafka(jars, (f"SSL://127.0.0.1:{tls_port}",), (*certificates.properties, protocols))
    return Broker(kafka.start(directory), tls_port, certificates)


def measure(broker: Broker, protocol: str, batch: Batch, requests: int, handshakes: int) -> dict[str, dict[str, float]]:
    """Return the figures of each kind of load over one protocol."""
    dialect = KafkaDialect()
    topic = f"{protocol.lower()}-{time.monotonic_ns()}"
    with broker.connect(protocol) as connection:
        dialect.create(connection, topic)
        produce = _load(broker, connection, [dialect.produce(topic, batch.data)] * requests)
        offsets = [number * batch.record_count for number in range(requests)]
        fetch = _load(broker, connection, [dialect.fetch(topic, offset, len(batch.data)) for offset in offsets])
    figures = {"produce": produce, "fetch": fetch}
    if protocol == "SSL":
        figures["handshakes"] = _handshakes(broker, handshakes)
    return figures


def _load(broker: Broker, connection: socket.socket, frames: list[bytes]) -> dict[str, float]:
    """Send the frames, a few ahead of the answers."""
    cpu, started = broker.running.cpu_seconds(), time.monotonic()
    moved = 0
    for number in range(len(frames) + IN_FLIGHT):
        if number < len(frames):
            connection.sendall(frames[number])
            moved += len(frames[number])
        if number >= IN_FLIGHT:
            size = int.from_bytes(receive_exactly(connection, 4), "big")
            moved += len(receive_exactly(connection, size))
    gigabytes, seconds = moved / 1e9, time.monotonic() - started
    return {"cpu_s_per_gb": (broker.running.cpu_seconds() - cpu) / gigabytes, "mb_per_s": moved / 1e6 / seconds}


def _handshakes(broker: Broker, count: int) -> dict[str, float]:
    def connect(_: int) -> None:
        with broker.connect("SSL") as connection:
            KafkaDialect().say_hello(connection)

    cpu, started = broker.running.cpu_seconds(), time.monotonic()
    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(connect, range(count)))
    seconds = time.monotonic() - started
    return {"per_s": count / seconds, "cpu_ms_each": (broker.running.cpu_seconds() - cpu) / count * 1000}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tls", description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0, help="produced and fetched per protocol and round")
    parser.add_argument("--handshakes", type=int, default=1000, help="per round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kafka-jars", type=Path, help="folder with the jars of Apache Kafka")
    parser.add_argument("--directory", type=Path, default=DIRECTORY)
    add_json_option(parser, "tls")
    options = parser.parse_args(arguments)
    options.directory.mkdir(parents=True, exist_ok=True)
    batch = build_full_batch(REQUEST_BYTES, VALUE_BYTES)
    requests = max(IN_FLIGHT, int(options.gigabytes * 1e9) // len(batch.data))
    samples: Samples = defaultdict(list)
    with tempfile.TemporaryDirectory(dir=options.directory) as temporary:
        certificates = Certificates(Path(temporary))
        for number in range(options.rounds):
            for name in ("Barnabas", "Apache Kafka") if options.kafka_jars else ("Barnabas",):
                directory = Path(temporary) / f"{name.split()[-1]}-{number}"
                directory.mkdir()
                if name == "Barnabas":
                    broker = start_barnabas(directory, certificates)
                else:
                    broker = start_kafka(directory, certificates, options.kafka_jars)
                with broker.running:
                    for protocol in PROTOCOLS:
                        # A JVM compiles only code that has run for some time; the warm-up is not counted.
                        measure(broker, protocol, batch, requests if name != "Barnabas" else IN_FLIGHT, THREADS)
                        figures = measure(broker, protocol, batch, requests, options.handshakes)
                        for kind, values in figures.items():
                            samples[name, protocol, kind].append(values)
                shutil.rmtree(directory)
    for (name, protocol, kind), rounds in samples.items():
        texts = [f"{key} {median(each[key] for each in rounds):.2f}" for key in rounds[0]]
        print(f"{name:13} {protocol:10} {kind:11} {'  '.join(texts)}")
    write_result(options.json, "tls", options, {" / ".join(key): rounds for key, rounds in samples.items()})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
