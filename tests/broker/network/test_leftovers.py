"""What connections and requests leave behind: nothing that only a garbage collection could free."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import trustme

from barnabas.protocol.messages.api_key import ApiKey
from tests.broker.network.test_tls_listeners import tls_settings
from tests.support.daemon import Daemon, start_daemon, with_fault
from tests.support.eventually import eventually
from tests.support.frame_connection import TIMEOUT_S, FrameConnection
from tests.support.kafka.kafka_wire import KafkaWire, framed
from tests.support.metrics import wait_for_metric
from tests.support.native.native_frames import answer_fields, native_request
from tests.support.storage.records import plain
from tests.support.tls import trusting
from tests.support.wire import WireClient
from tests.torture.hostile.wide_requests import wide_requests

_COUNTER = """
import gc, json, os, threading, time
from collections import Counter

def count(folder):
    while True:
        time.sleep(0.01)
        if os.path.exists(folder + "/ask"):
            gc.set_threshold(0)  # from the first question on, nothing but these collections
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
            names = Counter(type(each).__module__ + "." + type(each).__qualname__ for each in gc.garbage)
            gc.set_debug(0)
            gc.garbage.clear()
            gc.collect()
            os.remove(folder + "/ask")
            with open(folder + "/answer.new", "w") as file:
                json.dump(names, file)
            os.rename(folder + "/answer.new", folder + "/answer")

threading.Thread(target=count, args=({folder!r},), daemon=True).start()
"""


def _leftovers(daemon: Daemon, folder: Path, work: Callable[[], None]) -> dict[str, int]:
    """Work twice, the first time for the imports; return the objects of ours that only the collector could free."""
    found: dict[str, int] = {}
    for _ in range(2):
        work()
        wait_for_metric(daemon, "barnabas_connections_open", 0)
        answer = folder / "answer"
        (folder / "ask").touch()
        eventually(answer.exists, what="the daemon has collected")
        found = json.loads(answer.read_text())
        answer.unlink()
    return {name: times for name, times in found.items() if name.startswith(("barnabas.", "mmap.", "memoryview"))}


def test_connections_and_large_requests_are_free_at_their_ends(tmp_path: Path) -> None:
    names = {"add_partitions_to_txn transactions", "create_acls creations", "describe_topic_partitions topics"}
    refused = [each for each in wide_requests() if f"{each.api} {each.path}" in names]
    assert len(refused) == len(names)
    # CreateTopics of more than is decoded, and one that does not decode.
    undecodable = [framed(bytes((0, 19, 0, 7, 0, 0, 0, 1, 255, 255, 0)) + bytes(size)) for size in (3 << 20, 1 << 17)]

    def work() -> None:
        with WireClient(daemon.host, daemon.port) as wire:
            wire.produce("t", plain(1))
        with FrameConnection(daemon.host, daemon.port) as native:
            native.socket.sendall(native_request(ApiKey.FETCH, {"topics": [["t", [[0, 0, 100]]]]}))
            assert answer_fields(native.receive_frame())[3] == 0
        for each in refused:
            with KafkaWire(daemon.host, daemon.port) as kafka:
                kafka.socket.sendall(each.frame)
                assert len(kafka.receive_frame()) > len(each.frame) // 10
        for frame in undecodable:
            with KafkaWire(daemon.host, daemon.port) as kafka:
                kafka.socket.sendall(frame)
                with contextlib.suppress(ConnectionError):
                    kafka.socket.recv(100)
        with KafkaWire(daemon.host, daemon.port) as kafka:
            kafka.fetch(4, "t", 2, max_wait_ms=20)  # waits the first time

    environ = with_fault(tmp_path, _COUNTER.format(folder=str(tmp_path)))
    with start_daemon(tmp_path / "d", environ=environ) as daemon:
        with WireClient(daemon.host, daemon.port) as wire:
            wire.create_topic("t")
        assert _leftovers(daemon, tmp_path, work) == {}


def test_connections_of_users_over_tls_are_free_at_their_ends(
    tmp_path: Path, authority: trustme.CA, server_certificate: trustme.LeafCert
) -> None:
    settings = tls_settings(
        tmp_path,
        server_certificate,
        authority,
        "listeners=SASL_SSL://127.0.0.1:0",
        "sasl.enabled.mechanisms=PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config="
        'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="pencil";',
        "connection.failed.authentication.delay.ms=20",
    )

    def log_in(password: str) -> None:
        with KafkaWire(daemon.host, daemon.port) as kafka:
            kafka.socket = trusting(authority).wrap_socket(kafka.socket, server_hostname="127.0.0.1")
            kafka.call("sasl_handshake", 1, mechanism="PLAIN")
            answer = kafka.call("sasl_authenticate", 2, auth_bytes=f"\0alice\0{password}".encode())
            assert (answer.error_code == 0) == (password == "pencil")
            if answer.error_code == 0:
                kafka.call("api_versions", 0)

    def work() -> None:
        log_in("pencil")
        log_in("wrong")
        for first in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01"):
            with socket.create_connection((daemon.host, daemon.port), timeout=TIMEOUT_S) as peer:
                peer.sendall(first)
                if first[0] != 0x16:
                    with contextlib.suppress(ConnectionError):
                        peer.recv(100)
        with contextlib.suppress(ssl.SSLError), socket.create_connection((daemon.host, daemon.port)) as peer:
            ssl.create_default_context().wrap_socket(peer, server_hostname="127.0.0.1")  # does not trust the broker

    environ = with_fault(tmp_path, _COUNTER.format(folder=str(tmp_path)))
    with start_daemon(tmp_path / "d", *settings, environ=environ) as daemon:
        assert _leftovers(daemon, tmp_path, work) == {}
