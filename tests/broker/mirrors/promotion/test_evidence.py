"""What a promotion reads in logs: open transactions, end markers of several segments, markers after a cut."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.broker.mirrors.promotion import evidence
from barnabas.broker.mirrors.promotion.settling import UNKNOWN_EPOCH, UNKNOWN_TIME
from barnabas.broker.storage.log.append import TransactionEnd
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.protocol.records.end_marker import EndMarker
from tests.support.storage.bench import START_MS, LogBench, append, batch, log_config
from tests.support.storage.transactions import send

FIRST, SECOND = 7, 8
"""Producer ids."""


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    return LogBench(tmp_path).open(log_config(segment_bytes=2000))


def end(log: PartitionLog, producer_id: int, epoch: int, *, at_ms: int, is_commit: bool = True) -> None:
    marker = TransactionEnd(producer_id, epoch, EndMarker(is_commit, 0), 0)
    log.append_marker(marker, leader_epoch=0, timestamp_ms=START_MS + at_ms)


def fill(log: PartitionLog) -> None:
    """Append a segment of other records."""
    for _ in range(6):
        append(log, batch((1, b"k", b"v" * 50)))
    log.roll()


def found(log: PartitionLog, since_ms: int) -> list[tuple[int, int, int, bool, int]]:
    """Return data epoch, marker epoch, outcome and time of the first producer's markers."""
    return [
        (each.producer_id, each.data_epoch, each.marker_epoch, each.is_commit, each.timestamp_ms - START_MS)
        for each in evidence.endings(log, [FIRST, 99], since_ms)
    ]


def test_open_transactions_have_the_time_of_the_marker_before_them(log: PartitionLog) -> None:
    send(log, FIRST, 0, b"a")
    assert [each.began_after_ms for each in evidence.open_transactions(log)] == [UNKNOWN_TIME]
    end(log, FIRST, 1, at_ms=5)
    fill(log)
    offset = log.log_end_offset
    send(log, SECOND, 0, b"b")
    end(log, FIRST, 1, at_ms=9, is_commit=False)
    (opened,) = evidence.open_transactions(log)
    assert (opened.producer_id, opened.epoch, opened.first_offset) == (SECOND, 0, offset)
    assert opened.began_after_ms == START_MS + 5


def test_markers_are_found_back_to_the_segment_that_is_old_enough(log: PartitionLog) -> None:
    send(log, FIRST, 0, b"a")
    end(log, FIRST, 0, at_ms=1)
    send(log, FIRST, 1, b"b")
    fill(log)
    end(log, FIRST, 1, at_ms=5, is_commit=False)
    fill(log)
    send(log, SECOND, 0, b"c")
    end(log, SECOND, 0, at_ms=8)
    everything = [(FIRST, 0, 0, True, 1), (FIRST, 0, 1, False, 5)]
    assert found(log, UNKNOWN_TIME) == everything
    assert found(log, START_MS + 5) == everything
    assert found(log, START_MS + 6) == [(FIRST, UNKNOWN_EPOCH, 1, False, 5)]
    assert found(log, START_MS + 9) == []
    assert evidence.endings(log, [99], UNKNOWN_TIME) == []


def test_a_cut_opens_transactions_whose_first_marker_after_it_is_known(log: PartitionLog) -> None:
    send(log, FIRST, 0, b"a")
    send(log, SECOND, 0, b"b")
    fill(log)
    end(log, FIRST, 0, at_ms=1)
    end(log, SECOND, 0, at_ms=2, is_commit=False)
    send(log, SECOND, 1, b"b")
    end(log, SECOND, 0, at_ms=3)
    assert evidence.committed_after(log, 2) == {FIRST}
    assert evidence.committed_after(log, log.log_end_offset - 1) == {SECOND}
    assert evidence.committed_after(log, log.log_end_offset) == set()
