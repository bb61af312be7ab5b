"""Benchmark of SASL: `python -m benchmarks.sasl_logins`.

    logins        per second by PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512, each on a new connection, over SASL_PLAINTEXT;
                  the broker's CPU per login
    unfinished    memory of the broker per peer that sends half a handshake and waits, and the median time of a login
                  without and with those peers

The clients are processes of this machine. They derive their key from the password once, which no real client does: the
time is the broker's. With --open, --secure and --pid another broker is measured, such as Apache Kafka, whose SASL
listener must have these three mechanisms and the PLAIN user `alice` with the password `pencil`.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import socket
import struct
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from barnabas.protocol.sasl.exchange import SaslClient
from barnabas.protocol.sasl.plain import PlainClient
from barnabas.protocol.sasl.scram_client import ScramClient
from barnabas.protocol.sasl.scram_keys import SCRAM_MECHANISMS, salted_password
from benchmarks.dialect import receive_exactly
from benchmarks.kafka_dialect import KafkaDialect
from benchmarks.result_files import add_json_option, write_result
from benchmarks.system import cpu_seconds_of, free_port, start_process

USER, PASSWORD, SALT, ITERATIONS = "alice", "pencil", b"a fixed salt", 4096
MECHANISMS = ("PLAIN", *SCRAM_MECHANISMS)
LOGINS_FOR_A_MEDIAN = 300
_HANDSHAKE, _AUTHENTICATE, _ALTER_USERS = 17, 36, 51
_PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"

Address = tuple[str, int]

_derive_once = functools.cache(salted_password)


def add_users(address: Address) -> None:
    """Create the user of both SCRAM mechanisms, by AlterUserScramCredentials version 0."""
    changes = b""
    for mechanism in SCRAM_MECHANISMS.values():
        salted = salted_password(mechanism, PASSWORD, SALT, ITERATIONS)
        fields = _compact(USER.encode()) + struct.pack(">bi", mechanism.code, ITERATIONS)
        changes = fields + _compact(SALT) + _compact(salted) + b"\0"
        with socket.create_connection(address) as connection:
            _call(connection, _ALTER_USERS, 0, b"\0" + b"\x01" + b"\x02" + changes + b"\0")


def log_in(address: Address, mechanism: str) -> None:
    """Connect, authenticate and disconnect."""
    client: SaslClient
    if mechanism == "PLAIN":
        client = PlainClient(USER, PASSWORD)
    else:
        client = ScramClient(SCRAM_MECHANISMS[mechanism], USER, PASSWORD, derive=_derive_once)
    with socket.create_connection(address) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _call(connection, _HANDSHAKE, 1, struct.pack(">h", len(mechanism)) + mechanism.encode())
        message: bytes | None = client.start()
        while message is not None:
            answer = _call(connection, _AUTHENTICATE, 1, struct.pack(">i", len(message)) + message)
            (text,) = struct.unpack_from(">h", answer, 6)
            position = 8 + max(text, 0)
            (size,) = struct.unpack_from(">i", answer, position)
            message = client.respond(answer[position + 4 : position + 4 + size])


def count_logins(address: Address, mechanism: str, seconds: float) -> int:
    """Log in again and again for that time; return how often."""
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        log_in(address, mechanism)
        count += 1
    return count


def median_login_ms(address: Address) -> float:
    """Return the median time of a login by SCRAM-SHA-256, one at a time."""
    times = []
    for _ in range(LOGINS_FOR_A_MEDIAN):
        started = time.perf_counter()
        log_in(address, "SCRAM-SHA-256")
        times.append(time.perf_counter() - started)
    return median(times) * 1000


def measure(opened: Address, secure: Address, pid: int, options: argparse.Namespace) -> dict[str, Any]:
    """Run all lines."""
    add_users(opened)
    samples: dict[str, Any] = {}
    with multiprocessing.get_context("spawn").Pool(options.workers) as pool:
        for mechanism in MECHANISMS:
            pool.starmap(count_logins, [(secure, mechanism, options.seconds / 4)] * options.workers)
            cpu, started = cpu_seconds_of(pid), time.monotonic()
            counts = pool.starmap(count_logins, [(secure, mechanism, options.seconds)] * options.workers)
            elapsed, cpu = time.monotonic() - started, cpu_seconds_of(pid) - cpu
            count = sum(counts)
            samples[mechanism] = {"logins_per_second": count / elapsed, "cpu_us_per_login": cpu / count * 1e6}
            print(f"{mechanism}: {samples[mechanism]}", flush=True)
        alone = pool.apply(median_login_ms, (secure,))
        before = _rss_kib(pid)
        half = _frame(_HANDSHAKE, 1, struct.pack(">h", 5) + b"PLAIN")[:15]
        peers = [socket.create_connection(secure) for _ in range(options.peers)]
        for peer in peers:
            peer.sendall(half)
        beside = pool.apply(median_login_ms, (secure,))
        samples["unfinished"] = {
            "peers": options.peers,
            "kib_per_peer": (_rss_kib(pid) - before) / options.peers,
            "login_ms_alone": alone,
            "login_ms_beside": beside,
        }
        print(f"unfinished: {samples['unfinished']}", flush=True)
        for peer in peers:
            peer.close()
    return samples


def main(arguments: list[str]) -> int:
    """Run with these arguments."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sasl_logins", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="duration of each line (default 5)")
    parser.add_argument("--workers", type=int, default=4, help="client processes (default 4)")
    parser.add_argument("--peers", type=int, default=1000, help="peers that never finish (default 1000)")
    parser.add_argument("--open", type=_address, help="HOST:PORT of another broker's PLAINTEXT listener")
    parser.add_argument("--secure", type=_address, help="HOST:PORT of its SASL_PLAINTEXT listener")
    parser.add_argument("--pid", type=int, help="its process id")
    add_json_option(parser, "sasl_logins")
    options = parser.parse_args(arguments)
    if options.secure is not None:
        samples = measure(options.open, options.secure, options.pid, options)
    else:
        opened, secure = free_port(), free_port()
        settings = [
            f"listeners=OPEN://127.0.0.1:{opened},SECURE://127.0.0.1:{secure}",
            "listener.security.protocol.map=OPEN:PLAINTEXT,SECURE:SASL_PLAINTEXT",
            f"sasl.enabled.mechanisms={','.join(MECHANISMS)}",
            f'listener.name.secure.plain.sasl.jaas.config={_PLAIN_MODULE} required user_{USER}="{PASSWORD}";',
            "metrics.listener=",
        ]
        with tempfile.TemporaryDirectory(prefix="barnabas-logins-") as directory:
            command = [sys.executable, "-m", "barnabas", "serve", "--log-level", "warning"]
            for setting in [*settings, f"log.dirs={directory}/data"]:
                command += ["--set", setting]
            with start_process(command, Path(directory), opened, KafkaDialect()) as running:
                samples = measure(("127.0.0.1", opened), ("127.0.0.1", secure), running.pid, options)
    write_result(options.json, "benchmarks.sasl_logins", options, samples)
    return 0


def _call(connection: socket.socket, api: int, version: int, body: bytes) -> bytes:
    """Send a request; return its response from the correlation id on. An error's code is not looked at but for SASL."""
    connection.sendall(_frame(api, version, body))
    (size,) = struct.unpack(">i", receive_exactly(connection, 4))
    answer = receive_exactly(connection, size)
    if api != _ALTER_USERS and struct.unpack_from(">h", answer, 4)[0]:
        raise RuntimeError(f"api {api} is answered with error {struct.unpack_from('>h', answer, 4)[0]}")
    return bytes(answer)


def _frame(api: int, version: int, body: bytes) -> bytes:
    header = struct.pack(">hhihs", api, version, 1, 1, b"b")
    return struct.pack(">i", len(header) + len(body)) + header + body


def _compact(data: bytes) -> bytes:
    """Prefix with a size below 127, as in flexible versions."""
    return bytes([len(data) + 1]) + data


def _rss_kib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise RuntimeError(f"process {pid} is gone")


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    return host, int(port)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
