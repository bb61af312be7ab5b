"""The client's fetch session: what each request contains, compared with a broker that keeps the session."""

from __future__ import annotations

import random
from collections.abc import Sequence

from barnabas.clients.network.fetch_session import FetchSession, WantedPartition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.fetch import FetchRequest, FetchResponse
from barnabas.protocol.topic_partition import TopicPartition

Wanted = dict[TopicPartition, WantedPartition]
Key = tuple[str, bytes, int]


def wanted(offsets: dict[tuple[str, int], int], ids: dict[str, int] | None = None) -> Wanted:
    return {
        TopicPartition(topic, number): WantedPartition(bytes([(ids or {}).get(topic, 1)]) * 16, offset, 100)
        for (topic, number), offset in offsets.items()
    }


def query(session: FetchSession, partitions: Wanted) -> FetchRequest:
    return session.next_query(partitions, max_wait_ms=1, min_bytes=2, max_bytes=3)


def answer(error: ErrorCode = ErrorCode.NONE, session_id: int = 0) -> FetchResponse:
    return FetchResponse(topics=(), error=error, session_id=session_id)


def keys(found: FetchRequest) -> list[tuple[str, int, int]]:
    return [(topic.name, each.partition, each.offset) for topic in found.topics for each in topic.partitions]


def forgotten(found: FetchRequest) -> list[tuple[str, Sequence[int]]]:
    return [(each.name, each.partitions) for each in found.forgotten]


def test_after_the_first_request_only_changes_are_sent() -> None:
    session = FetchSession()
    first = query(session, wanted({("t", 0): 5, ("u", 0): 6, ("t", 1): 7}))
    assert (first.max_wait_ms, first.min_bytes, first.max_bytes) == (1, 2, 3)
    assert (first.session_id, first.session_epoch) == (0, 0)
    assert keys(first) == [("t", 0, 5), ("u", 0, 6), ("t", 1, 7)]
    assert session.accepted(answer(session_id=9))
    second = query(session, wanted({("t", 0): 5, ("u", 0): 8, ("v", 0): 1}))
    assert (second.session_id, second.session_epoch) == (9, 1)
    assert keys(second) == [("u", 0, 8), ("v", 0, 1)]
    assert forgotten(second) == [("t", [1])]
    assert session.accepted(answer(session_id=9))
    third = query(session, wanted({("t", 0): 5, ("u", 0): 8, ("v", 0): 1}))
    assert (third.session_epoch, keys(third), forgotten(third)) == (2, [], [])


def test_a_topic_of_another_id_is_forgotten_and_added() -> None:
    session = FetchSession()
    query(session, wanted({("t", 0): 5}))
    session.accepted(answer(session_id=9))
    changed = query(session, wanted({("t", 0): 5}, {"t": 2}))
    assert [(each.topic_id, each.partitions) for each in changed.forgotten] == [(b"\1" * 16, [0])]
    assert [each.topic_id for each in changed.topics] == [b"\2" * 16]


def test_a_broker_without_a_session_gets_full_requests() -> None:
    session = FetchSession()
    for _ in range(2):
        found = query(session, wanted({("t", 0): 5}))
        assert (found.session_id, found.session_epoch, keys(found)) == (0, 0, [("t", 0, 5)])
        assert session.accepted(answer())


def test_an_unknown_session_is_replaced_and_one_in_doubt_is_closed() -> None:
    for error, session_id in (
        (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0),
        (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 9),
        (ErrorCode.UNKNOWN_SERVER_ERROR, 9),
    ):
        session = FetchSession()
        query(session, wanted({("t", 0): 5}))
        session.accepted(answer(session_id=9))
        query(session, wanted({("t", 0): 5}))
        assert not session.accepted(answer(error))
        found = query(session, wanted({("t", 0): 5}))
        assert (found.session_id, found.session_epoch, keys(found)) == (session_id, 0, [("t", 0, 5)])


def test_the_epoch_after_the_largest_is_one() -> None:
    session = FetchSession()
    session._epoch = 2**31 - 1
    session._id = 9
    assert query(session, {}).session_epoch == 2**31 - 1
    session.accepted(answer(session_id=9))
    assert query(session, {}).session_epoch == 1


def test_the_broker_always_knows_what_is_wanted() -> None:
    rng = random.Random("sessions")
    session = FetchSession()
    at_broker: dict[Key, int] = {}
    session_id = 0
    for turn in range(500):
        partitions = wanted(
            {(rng.choice("tuv"), rng.randrange(3)): rng.randrange(3) for _ in range(rng.randrange(6))},
            {"t": rng.choice((1, 1, 1, 2))},
        )
        found = query(session, partitions)
        if found.session_epoch == 0:
            at_broker.clear()
            session_id = turn + 1
        for topic in found.forgotten:
            for number in topic.partitions:
                del at_broker[topic.name, topic.topic_id, number]
        for each in found.topics:
            for part in each.partitions:
                at_broker[each.name, each.topic_id, part.partition] = part.offset
        assert at_broker == {(key.topic, each.topic_id, key.partition): each.offset for key, each in partitions.items()}
        match rng.randrange(10):
            case 0:
                session.lost()
            case 1:
                session.accepted(answer(ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
            case _:
                session.accepted(answer(session_id=session_id))
