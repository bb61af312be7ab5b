"""Failures in the log: bounded, and without anything confidential."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.broker.network.session import Session
from barnabas.broker.repeated_warnings import LINES, MAX_EVENTS, OTHERS
from barnabas.broker.security.sasl.failure_log import USERS, FailureLog
from barnabas.config.listeners import Listener
from tests.support.manual_loop import ManualLoop
from tests.support.sasl import GatedListener


@pytest.fixture
def loop() -> Iterator[ManualLoop]:
    loop = ManualLoop()
    yield loop
    loop.close()


def test_repeated_failures_are_counted_until_a_window_has_none(
    loop: ManualLoop, caplog: pytest.LogCaptureFixture
) -> None:
    log = FailureLog(loop)

    def fail(times: int) -> None:
        for _ in range(times):
            log.failed("192.0.2.7", "SECURE", "PLAIN", "wrong user or password", user="alice")

    fail(3)
    loop.pass_time(9_999)
    assert [record.getMessage() for record in caplog.records] == [
        "authentication failed, host=192.0.2.7 listener=SECURE mechanism=PLAIN user=alice: wrong user or password"
    ]
    loop.pass_time(2)
    fail(1)
    loop.pass_time(10_000)
    assert [record.getMessage().partition(", host")[0] for record in caplog.records[1:]] == [
        "authentication failed 2 more times in 10 s",
        "authentication failed 1 more times in 10 s",
    ]
    loop.pass_time(20_000)
    fail(1)
    assert len(caplog.records) == 4
    assert "user=alice" in caplog.records[3].getMessage()


def test_several_users_of_one_host_have_a_line_each_up_to_a_limit(
    loop: ManualLoop, caplog: pytest.LogCaptureFixture
) -> None:
    log = FailureLog(loop)
    for user in ["alice", "bob", *(f"guess-{number}" for number in range(100))] * 2:
        log.failed("192.0.2.7", "SECURE", "PLAIN", "wrong user or password", user=user)
    logged = [record.getMessage().partition(" user=")[2].partition(":")[0] for record in caplog.records]
    assert logged == ["alice", "bob", *(f"guess-{number}" for number in range(USERS - 2))]
    loop.pass_time(10_001)
    assert "authentication failed 194 more times in 10 s" in caplog.records[-1].getMessage()


def test_a_failed_tls_handshake_has_no_mechanism(loop: ManualLoop, caplog: pytest.LogCaptureFixture) -> None:
    log = FailureLog(loop)
    for _ in range(3):
        log.failed_handshake("192.0.2.7", "SECURE", "no certificate", detail="x\ny")
    assert [record.getMessage() for record in caplog.records] == [
        "TLS handshake failed, host=192.0.2.7 listener=SECURE: no certificate ('x\\ny')"
    ]


def test_many_hosts_get_few_lines(loop: ManualLoop, caplog: pytest.LogCaptureFixture) -> None:
    log = FailureLog(loop)
    for number in range(10_000):
        log.failed(f"host-{number}", "SECURE", "PLAIN", "wrong user or password")
    assert len(caplog.records) == MAX_EVENTS + 1
    loop.pass_time(30_000)
    assert len(caplog.records) == MAX_EVENTS + 2
    assert f"host={OTHERS}" in caplog.records[-1].getMessage()


def test_a_name_cannot_forge_a_line(loop: ManualLoop, caplog: pytest.LogCaptureFixture) -> None:
    FailureLog(loop).failed("h", "L", "PLAIN", "r", user="x\n2026 INFO forged", detail="\x1b[2J")
    (record,) = caplog.records
    assert record.getMessage().isprintable()


def test_no_part_of_a_password_or_proof_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    server = GatedListener()
    canary = "canary-0123456789"
    for mechanism, message in [
        ("PLAIN", f"\0alice\0{canary}"),
        ("PLAIN", f"{canary}"),
        ("PLAIN", f"\0alice\0x\0{canary}"),
        ("SCRAM-SHA-256", f"n,,n=alice,r=,{canary}"),
    ]:
        for version in (0, 2):
            peer = server.connect()
            peer.handshake(mechanism, version=min(version, 1))
            if version:
                peer.authenticate(message.encode())
            else:
                peer.send(len(message).to_bytes(4, "big") + message.encode())
            peer.loop.pass_time(1_000)
            assert peer.is_closed()
    assert caplog.records
    assert not [record for record in caplog.records if canary in record.getMessage()]
    server.loop.close()


def test_sessions_that_are_over_have_few_lines(loop: ManualLoop, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    log = FailureLog(loop)
    session = Session(Listener("SECURE", "127.0.0.1", 0))
    session.host = "192.0.2.7"
    for _ in range(LINES + 3):
        log.session_over(session, "SECURE")
    assert len(caplog.records) == LINES
    loop.pass_time(10_001)
    count = "a connection was closed 3 more times in 10 s, host=192.0.2.7 listener=SECURE: its session was over"
    assert caplog.messages[-1] == count
