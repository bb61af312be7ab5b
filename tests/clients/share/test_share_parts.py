"""The parts of the share consumer that have no I/O."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from barnabas.clients.config import ShareConsumerConfig
from barnabas.clients.errors import ClientConfigError, ClosedError
from barnabas.clients.records import ShareRecord
from barnabas.clients.share import acquired
from barnabas.clients.share.acknowledgements import (
    IMPLICIT_DELAY_S,
    Acknowledgement,
    Outcome,
    Pending,
    PendingAcknowledgements,
    topics_of,
    without_renewals,
)
from barnabas.clients.share.acquired import read_acquired
from barnabas.clients.share.held_records import HeldRecord, HeldRecords
from barnabas.clients.share.share_session import ShareSession
from barnabas.protocol.messages.share.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
)
from barnabas.protocol.messages.share.share_fetch import AcquiredRecords, ForgottenTopic, ShareFetchPartition
from barnabas.protocol.records.builder import RecordBatchBuilder
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.wire.pieces import RecordBytes

T, U = b"t" * 16, b"u" * 16
PARTITION = TopicPartition("t", 0)
CONFIG = ShareConsumerConfig(group="g")


def asked(topic_id: bytes, partitions: Sequence[AcknowledgePartition]) -> AcknowledgeTopic:
    return AcknowledgeTopic(topic_id=topic_id, partitions=partitions)


def part(number: int, batches: Sequence[AcknowledgementBatch]) -> AcknowledgePartition:
    return AcknowledgePartition(partition=number, batches=batches)


def run_of(first: int, last: int, types: Sequence[int]) -> AcknowledgementBatch:
    return AcknowledgementBatch(first_offset=first, last_offset=last, types=types)


def held(offset: int, *, partition: int = 0, deadline: float = 100.0, count: int = 1, owner: Any = None) -> HeldRecord:
    return HeldRecord(TopicPartition("t", partition), T, offset, count, deadline, owner)


def due_at(pending: PendingAcknowledgements) -> float | None:
    return pending.due_at


def renews(pending: PendingAcknowledgements) -> bool:
    return pending.has_renewals


def is_open(session: ShareSession) -> bool:
    return session.is_open


def record(offset: int, count: int = 1) -> ShareRecord:
    return ShareRecord("t", 0, offset, 0, 0, None, b"", (), count)


def test_offsets_are_sent_in_order_and_neighbours_together() -> None:
    pending = PendingAcknowledgements()
    kinds = {7: 1, 5: 1, 6: 1, 20: 2, 21: 3, 30: 0}
    for offset, kind in kinds.items():
        pending.add(Pending(Acknowledgement(kind), held(offset), None), 1.0)
    assert due_at(pending) == 1.0 + IMPLICIT_DELAY_S
    assert topics_of(pending.take()) == [
        asked(
            T,
            [
                part(
                    0,
                    [
                        run_of(5, 7, [1]),
                        run_of(20, 21, [2, 3]),
                        run_of(30, 30, [0]),
                    ],
                )
            ],
        )
    ]
    assert due_at(pending) is None
    assert not pending.take()


async def test_a_later_acknowledgement_replaces_a_renewal_that_was_not_sent() -> None:
    pending = PendingAcknowledgements()
    renewal, acceptance = Outcome(1), Outcome(1)
    pending.add(Pending(Acknowledgement.RENEW, held(5), renewal), 2.0)
    assert renews(pending)
    pending.add(Pending(Acknowledgement.ACCEPT, held(5), acceptance), 2.0)
    assert not renews(pending)
    assert due_at(pending) == 2.0
    await renewal.future
    assert [each.kind for each in pending.take()[T, 0].values()] == [Acknowledgement.ACCEPT]


async def test_a_renewal_that_is_sent_again_does_not_replace_a_later_acknowledgement() -> None:
    pending = PendingAcknowledgements()
    renewal, acceptance = Outcome(1), Outcome(1)
    pending.add(Pending(Acknowledgement.ACCEPT, held(5), acceptance), 2.0)
    pending.add_again(Pending(Acknowledgement.RENEW, held(5), renewal), 3.0)
    assert renewal.future.done()
    assert not acceptance.future.done()
    assert not renews(pending)
    assert [each.kind for each in pending.take()[T, 0].values()] == [Acknowledgement.ACCEPT]
    pending.add_again(Pending(Acknowledgement.RENEW, held(5), Outcome(1)), 3.0)
    assert renews(pending)


async def test_renewals_are_refused_for_an_old_broker_and_the_others_are_sent() -> None:
    pending = PendingAcknowledgements()
    renewal, acceptance = Outcome(1), Outcome(1)
    pending.add(Pending(Acknowledgement.RENEW, held(5), renewal), 2.0)
    pending.add(Pending(Acknowledgement.ACCEPT, held(6), acceptance), 2.0)
    kept = without_renewals(pending.take(), ClosedError("too old"))
    assert topics_of(kept) == [asked(T, [part(0, [run_of(6, 6, [1])])])]
    with pytest.raises(ClosedError, match="too old"):
        await renewal.future
    assert not acceptance.future.done()


async def test_a_call_ends_with_its_last_answer_and_has_the_first_error() -> None:
    outcome = Outcome(3)
    outcome.settle(None)
    outcome.settle(ValueError("first"))
    assert not outcome.future.done()
    outcome.settle(ValueError("second"))
    with pytest.raises(ValueError, match="first"):
        await outcome.future
    cancelled = Outcome(1)
    cancelled.future.cancel()
    cancelled.settle(ValueError("nobody waits"))
    await asyncio.sleep(0)


def test_a_session_names_partitions_once() -> None:
    session = ShareSession()
    assert not is_open(session)
    opened = session.next_fetch(frozenset({(T, 0), (T, 1)}), [])
    assert opened == ([asked(T, [part(0, []), part(1, [])])], [])
    session.accepted()
    assert is_open(session)
    assert session.has([(T, 1)])
    assert not session.has([(T, 1), (U, 0)])
    acknowledged = [asked(T, [part(1, [run_of(3, 3, [1])])])]
    topics, forgotten = session.next_fetch(frozenset({(T, 1), (U, 0), (T, 2)}), acknowledged)
    assert topics == [
        asked(T, [part(1, [run_of(3, 3, [1])]), part(2, [])]),
        asked(U, [part(0, [])]),
    ]
    assert forgotten == [ForgottenTopic(topic_id=T, partitions=[0])]
    session.accepted()
    assert session.epoch == 2
    session.epoch = 0x7FFF_FFFF
    session.accepted()
    assert session.epoch == 1
    session.lost()
    assert session.next_fetch(frozenset({(T, 1)}), []) == ([asked(T, [part(1, [])])], [])


def test_a_lock_is_of_one_delivery_and_ends() -> None:
    locks = HeldRecords()
    locks.add(held(5, deadline=10, owner="a"), 0)
    locks.add(held(6, deadline=20, owner="b"), 0)
    assert locks.get(record(5), 9) is not None
    assert locks.get(record(5), 10) is None
    assert locks.get(record(5, count=2), 9) is None
    locks.add(held(5, deadline=30, count=2, owner="a"), 9)
    assert locks.get(record(5), 9) is None
    assert locks.get(record(5, count=2), 9) is not None
    locks.drop_expired(25)
    assert len(locks) == 1
    assert locks.remove_of("a") == 1
    assert len(locks) == 0


def fetched(data: bytes, *ranges: tuple[int, int, int]) -> ShareFetchPartition:
    offsets = [AcquiredRecords(*each) for each in ranges]
    return ShareFetchPartition(partition=0, records=RecordBytes(data), acquired=offsets)


def batch(base_offset: int, *values: bytes) -> bytes:
    builder = RecordBatchBuilder(max_bytes=1000, base_offset=base_offset)
    assert builder.append_values(0, values) == len(values)
    return builder.build()


def test_only_acquired_records_are_read_with_their_counts() -> None:
    data = batch(10, b"a", b"b", b"c") + batch(20, b"d", b"e")
    found = read_acquired(PARTITION, fetched(data, (11, 12, 1), (20, 20, 3)), CONFIG)
    assert [(each.offset, each.value, each.delivery_count) for each in found.records] == [
        (11, b"b", 1),
        (12, b"c", 1),
        (20, b"d", 3),
    ]
    assert (found.gaps, found.unread, found.error) == ([], [], None)


def test_offsets_without_a_record_are_gaps_and_those_after_a_corrupt_batch_unread() -> None:
    data = batch(10, b"a") + batch(12, b"c") + batch(13, b"damaged")[:-1] + b"\xff" + batch(14, b"e")
    found = read_acquired(PARTITION, fetched(data, (10, 14, 2)), CONFIG)
    assert [each.value for each in found.records] == [b"a", b"c"]
    assert found.gaps == [(11, 2)]
    assert found.unread == [(13, 2), (14, 2)]
    assert found.error is not None
    assert (found.error.offset, found.error.next_offset) == (13, 14)


def test_a_range_of_acquired_offsets_costs_no_more_than_its_records_and_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(acquired, "MAX_MISSING", 3)
    found = read_acquired(PARTITION, fetched(batch(10, b"a", b"b"), (10, 30, 1)), CONFIG)
    assert [each.offset for each in found.records] == [10, 11]
    assert (found.gaps, found.unread) == ([], [(12, 1), (13, 1), (14, 1)])


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ({"group": ""}, "group must be a name"),
        ({"acknowledgement": "auto"}, "acknowledgement must be one of implicit, explicit"),
        ({"acquire_mode": "all"}, "acquire_mode must be one of batch_optimized, record_limit"),
        ({"check_crcs": 1}, "check_crcs must be True or False"),
        ({"max_poll_records": 0}, "max_poll_records=0 must be between 1 and"),
        ({"max_bytes": 2**30}, "cannot be above max_frame_bytes"),
    ],
)
def test_wrong_settings_are_named(setting: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ClientConfigError, match=sentence):
        ShareConsumerConfig(**{"group": "g", **setting})


def test_locks_that_have_run_out_are_dropped_behind_one_that_is_renewed_again_and_again() -> None:
    locks = HeldRecords()
    renewed, *others = (held(offset, deadline=30.0) for offset in range(10))
    for each in (renewed, *others):
        locks.add(each, 0.0)
    locks.renew(renewed, 60.0)
    locks.drop_expired(30.0)
    assert len(locks) == 1
    locks.remove(renewed)
    locks.renew(renewed, 90.0)
    assert len(locks) == 0, "it was acknowledged meanwhile"
