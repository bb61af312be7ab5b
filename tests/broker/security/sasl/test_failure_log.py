"""Failures in the log: bounded, and without anything confidential."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.broker.repeated_warnings import MAX_EVENTS, OTHERS
from barnabas.broker.security.sasl.failure_log import FailureLog
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
