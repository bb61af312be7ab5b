"""Benchmark of SASL: `python -m benchmarks.sasl_logins`, with --kafka-jars beside Apache Kafka in the same rounds.

    logins        per second by PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512, each on a new connection, over SASL_PLAINTEXT;
                  the broker's CPU per login
    unfinished    memory of the broker per peer that sends half a handshake and waits, and the median time of a login
                  without and with those peers

The clients are processes of this machine. They derive their key from the password once, which no real client does: the
time is the broker's.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import socket
import struct
import sys
import time
from collections.abc import Mapping
from statistics import median

from barnabas.protocol.sasl.exchange import SaslClient, SaslError
from barnabas.protocol.sasl.plain import PlainClient
from barnabas.protocol.sasl.scram_client import ScramClient
from barnabas.protocol.sasl.scram_keys import SCRAM_MECHANISMS, salted_password
from benchmarks.brokers.system import free_port
from benchmarks.requests.kafka_dialect import receive_exactly
from benchmarks.runs.side_by_side import (
    Columns,
    Round,
    run_and_report,
    say_columns,
    side_by_side_options,
    systems_of,
)

USER, PASSWORD, SALT, ITERATIONS = "alice", "pencil", b"a fixed salt", 4096
MECHANISMS = ("PLAIN", *SCRAM_MECHANISMS)
LOGINS_FOR_A_MEDIAN = 300
_HANDSHAKE, _AUTHENTICATE, _ALTER_USERS = 17, 36, 51
_PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
USER_SECONDS_MAX = 30.0

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


def measure(round_: Round, secure: Address, options: argparse.Namespace) -> Mapping[str, Columns]:
    """Run all lines."""
    running = round_.running
    add_users((running.host, running.port))
    found: dict[str, Columns] = {}
    with multiprocessing.get_context("spawn").Pool(options.workers) as pool:
        for mechanism in MECHANISMS:
            _await_login(secure, mechanism)
            pool.starmap(count_logins, [(secure, mechanism, round_.warm_seconds)] * options.workers)
            cpu, started = running.cpu_seconds(), time.monotonic()
            counts = pool.starmap(count_logins, [(secure, mechanism, options.seconds)] * options.workers)
            elapsed, cpu = time.monotonic() - started, running.cpu_seconds() - cpu
            found[mechanism] = {
                "logins_per_second": sum(counts) / elapsed,
                "cpu_us_per_login": cpu / sum(counts) * 1e6,
            }
            say_columns(mechanism, found[mechanism])
        alone = pool.apply(median_login_ms, (secure,))
        before = running.rss_mib()
        half = _frame(_HANDSHAKE, 1, struct.pack(">h", 5) + b"PLAIN")[:15]
        peers = [socket.create_connection(secure) for _ in range(options.peers)]
        for peer in peers:
            peer.sendall(half)
        beside = pool.apply(median_login_ms, (secure,))
        found[f"{options.peers:,} unfinished"] = {
            "kib_per_peer": (running.rss_mib() - before) * 1024 / options.peers,
            "login_ms_alone": alone,
            "login_ms_beside": beside,
        }
        say_columns("unfinished", found[f"{options.peers:,} unfinished"])
        for peer in peers:
            peer.close()
    return found


_COLUMNS = (
    ("logins per second", "logins_per_second", 1.0, "{:,.0f}"),
    ("broker CPU ms per login", "cpu_us_per_login", 1e-3, "{:.2f}"),
    ("KiB per unfinished peer", "kib_per_peer", 1.0, "{:.1f}"),
    ("login alone, ms", "login_ms_alone", 1.0, "{:.2f}"),
    ("login beside them, ms", "login_ms_beside", 1.0, "{:.2f}"),
)


def main(arguments: list[str]) -> int:
    """Run with these arguments."""
    parser = side_by_side_options("sasl_logins", __doc__)
    parser.add_argument("--workers", type=int, default=4, help="client processes (default 4)")
    parser.add_argument("--peers", type=int, default=1000, help="peers that never finish (default 1000)")
    options = parser.parse_args(arguments)
    secure = ("127.0.0.1", free_port())
    systems = systems_of(options, _properties(), [f"SECURE://127.0.0.1:{secure[1]}"])
    return run_and_report("sasl_logins", options, systems, lambda round_: measure(round_, secure, options), _COLUMNS)


def _properties() -> list[str]:
    """Return the properties of both systems."""
    prefix = "listener.name.secure"
    return [
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_PLAINTEXT",
        f"sasl.enabled.mechanisms={','.join(MECHANISMS)}",
        f'{prefix}.plain.sasl.jaas.config={_PLAIN_MODULE} required user_{USER}="{PASSWORD}";',
        *(f"{prefix}.{name.lower()}.sasl.jaas.config={_SCRAM_MODULE} required;" for name in SCRAM_MECHANISMS),
    ]


def _await_login(address: Address, mechanism: str) -> None:
    """Wait until a login succeeds: Kafka answers the creation of a user before its listener knows the user."""
    give_up = time.monotonic() + USER_SECONDS_MAX
    while True:
        try:
            log_in(address, mechanism)
            return
        except (OSError, RuntimeError, SaslError):
            if time.monotonic() > give_up:
                raise
            time.sleep(0.05)


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
