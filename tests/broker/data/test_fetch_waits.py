"""What ends the wait of a fetch, as in Kafka (KafkaApis.handleFetchRequest, ReplicaManager.fetchMessages).

In every path of the Python handler: without a session, opening one, continuing one; in one turn and in several.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

from barnabas.broker.handlers import turns
from barnabas.broker.handlers.data import fetch
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.storage.log.state import LogState
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.fetch import (
    NEW_SESSION,
    NO_SESSION,
    TOPIC_IDS_FROM,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.uuids import ZERO_UUID
from barnabas.protocol.wire.fields import LATEST
from tests.support.served_fetch import MAX_WAIT_MS, Served, offsets_of, run
from tests.support.storage.bench import TOPIC_ID, TP, LogBench, append, sized_batch

SECRET = TopicPartition("secret", 0)
OTHER_ID = bytes(16 * [7])
LIMIT = 1 << 20
OPENINGS = [NO_SESSION, NEW_SESSION]


class ReadsOrders:
    """Permissions of a client that may read the topic of `Served`, and nothing else."""

    generation = 1
    read_topic: Mapping[str, bool] = {TP.topic: True, SECRET.topic: False}

    def allows(self, *_: object, **__: object) -> bool:
        return False


class Case(NamedTuple):
    """A topic to fetch beside partition 0 of `Served`, and its error."""

    topic: FetchTopic
    error: ErrorCode
    prepare: Callable[[Served], object] = lambda _: None
    replica_id: int = -1


def orders(number: int, offset: int = 0, **epochs: Any) -> FetchTopic:
    return FetchTopic(
        name=TP.topic, partitions=[FetchPartition(partition=number, offset=offset, max_bytes=LIMIT, **epochs)]
    )


def by_id(topic_id: bytes, number: int = 0, name: str = "") -> FetchTopic:
    return FetchTopic(
        name=name, partitions=[FetchPartition(partition=number, offset=0, max_bytes=LIMIT)], topic_id=topic_id
    )


def _set(path: Callable[[Served], object], name: str, value: object) -> Callable[[Served], object]:
    return lambda served: setattr(path(served), name, value)


UNREAD = {
    "unknown partition": Case(orders(99), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "unknown topic": Case(
        FetchTopic(name="x", partitions=[FetchPartition(partition=0, offset=0, max_bytes=LIMIT)]),
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ),
    "unknown partition by id": Case(by_id(TOPIC_ID, 99), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "unknown id": Case(by_id(OTHER_ID), ErrorCode.UNKNOWN_TOPIC_ID),
    "READ refused": Case(
        FetchTopic(name=SECRET.topic, partitions=[FetchPartition(partition=0, offset=0, max_bytes=LIMIT)]),
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        _set(lambda served: served.client, "access", ReadsOrders()),
    ),
}

FAILED = {
    "out of range": Case(orders(1, 7), ErrorCode.OFFSET_OUT_OF_RANGE),
    "unknown leader epoch": Case(orders(1, current_leader_epoch=9), ErrorCode.UNKNOWN_LEADER_EPOCH),
    "fenced leader epoch": Case(
        orders(1, current_leader_epoch=0),
        ErrorCode.FENCED_LEADER_EPOCH,
        _set(lambda served: served.partitions[1], "leader_epoch", 3),
    ),
    "offline log": Case(
        orders(1),
        ErrorCode.KAFKA_STORAGE_ERROR,
        _set(lambda served: served.logs[1].core, "state", LogState.OFFLINE),
    ),
    "offline directory": Case(
        orders(99),
        ErrorCode.KAFKA_STORAGE_ERROR,
        lambda served: served.registry.add_without_log(TopicPartition(TP.topic, 99), "no room"),
    ),
    "id of a deleted topic": Case(by_id(OTHER_ID, 1, TP.topic), ErrorCode.INCONSISTENT_TOPIC_ID),
    "not a replica": Case(orders(1), ErrorCode.NOT_LEADER_OR_FOLLOWER, replica_id=9),
    "diverging": Case(
        orders(1, 1, last_fetched_epoch=1), ErrorCode.NONE, lambda served: append(served.logs[1], sized_batch(100), 2)
    ),
}


@pytest.fixture(params=["in one turn", "in turns"])
def served(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    if request.param == "in turns":
        monkeypatch.setattr(fetch, "WIDE_PARTITIONS", 0)
        monkeypatch.setattr(turns, "TURN_SECONDS", -1.0)
    each = Served(tmp_path)
    yield each
    for log in each.logs:
        log.close()


@pytest.fixture
def secret(served: Served, tmp_path: Path) -> Iterator[Partition]:
    """A partition that ReadsOrders may not read."""
    log = LogBench(tmp_path / "secret").open()
    partition = Partition(log, 0, OTHER_ID, served.probes.topic(SECRET.topic), cast("Any", served.loop))
    served.registry.add(SECRET, partition)
    yield partition
    log.close()


def ask(served: Served, *topics: FetchTopic, wait_ms: int = MAX_WAIT_MS, **settings: Any) -> Any:
    """Return the response, or the Deferred of a request that waits."""
    if any(has_id(topic) for topic in topics):
        settings["version"] = TOPIC_IDS_FROM
    answer = served.handler(
        served.client,
        FetchRequest(max_wait_ms=wait_ms, min_bytes=1, max_bytes=LIMIT, isolation=0, topics=list(topics), **settings),
    )
    return run(answer)[1] if asyncio.iscoroutine(answer) else answer


def has_id(topic: FetchTopic) -> bool:
    return topic.topic_id != ZERO_UUID


def both(case: Case) -> list[FetchTopic]:
    """Return the topic of a case, and partition 0 of `Served`, named in the same way."""
    return [case.topic, by_id(TOPIC_ID) if has_id(case.topic) else orders(0)]


class Continued:
    """A session, as its client continues it."""

    def __init__(self, served: Served, case: Case, topics: list[FetchTopic]) -> None:
        self.served = served
        version = TOPIC_IDS_FROM if has_id(case.topic) else TOPIC_IDS_FROM - 1
        self.settings = {"version": version, "replica_id": case.replica_id}
        opened = ask(served, *topics, wait_ms=0, session_epoch=NEW_SESSION, replica_id=case.replica_id)
        assert errors_of(opened) == [case.error] * bool(case.error)
        self.session_id = opened.session_id
        self.epoch = 1

    def ask(self, *topics: FetchTopic) -> Any:
        answer = ask(self.served, *topics, session_id=self.session_id, session_epoch=self.epoch, **self.settings)
        self.epoch += 1
        return answer


def ended(waiting: Any) -> FetchResponse:
    """Return what a wait has ended with."""
    assert isinstance(waiting, Deferred)
    assert waiting.done
    value = waiting.value
    response = run(value)[1] if asyncio.iscoroutine(value) else value
    assert isinstance(response, FetchResponse)
    return response


def errors_of(response: FetchResponse) -> list[ErrorCode]:
    return [each.error for topic in response.topics for each in topic.partitions if each.error]


def is_waiting(answer: object) -> bool:
    return isinstance(answer, Deferred) and not answer.done


@pytest.mark.usefixtures("secret")
@pytest.mark.parametrize("epoch", OPENINGS)
@pytest.mark.parametrize("name", UNREAD)
def test_a_partition_that_is_not_read_does_not_end_the_wait_of_the_others(
    served: Served, name: str, epoch: int
) -> None:
    case = UNREAD[name]
    case.prepare(served)
    waiting = ask(served, *both(case), session_epoch=epoch)
    assert is_waiting(waiting)
    served.append(0)
    response = ended(waiting)
    assert (errors_of(response), offsets_of(response)) == ([case.error], {0: 1})
    assert served.probes.fetches_waiting == 0


@pytest.mark.usefixtures("secret")
@pytest.mark.parametrize("name", UNREAD)
def test_a_session_with_a_partition_that_is_not_read_waits_in_each_of_its_fetches(served: Served, name: str) -> None:
    case = UNREAD[name]
    case.prepare(served)
    session = Continued(served, case, both(case))
    for offset in range(3):
        position = FetchTopic(
            name=TP.topic,
            partitions=[FetchPartition(partition=0, offset=offset, max_bytes=LIMIT)],
            topic_id=TOPIC_ID if has_id(case.topic) else ZERO_UUID,
        )
        waiting = session.ask(*([position] if offset else []))  # at first partition 0 is settled
        assert is_waiting(waiting)
        served.append(0)
        response = ended(waiting)
        assert (errors_of(response), offsets_of(response)) == ([case.error], {0: offset + 1})


@pytest.mark.usefixtures("secret")
@pytest.mark.parametrize("name", UNREAD)
def test_a_fetch_of_no_readable_partition_is_answered_at_once(served: Served, name: str) -> None:
    case = UNREAD[name]
    case.prepare(served)
    for epoch in OPENINGS:
        assert errors_of(ask(served, case.topic, session_epoch=epoch)) == [case.error]
    session = Continued(served, case, [case.topic])
    for _ in range(2):
        assert errors_of(session.ask()) == [case.error]


@pytest.mark.parametrize("name", FAILED)
def test_a_read_that_fails_is_answered_at_once(served: Served, name: str) -> None:
    case = FAILED[name]
    case.prepare(served)
    for epoch in OPENINGS:
        response = ask(served, *both(case), session_epoch=epoch, replica_id=case.replica_id)
        assert isinstance(response, FetchResponse)
        assert case.error in errors_of(response) or not case.error
    topics = both(case)[: 1 if case.replica_id >= 0 else 2]  # a follower may read neither
    session = Continued(served, case, topics)
    for _ in range(2):
        response = session.ask()
        assert isinstance(response, FetchResponse)
        assert [each.partition for topic in response.topics for each in topic.partitions] == [
            case.topic.partitions[0].partition
        ]


def test_records_of_a_topic_that_the_client_may_not_read_do_not_end_its_wait(served: Served, secret: Partition) -> None:
    case = UNREAD["READ refused"]
    case.prepare(served)
    session = Continued(served, case, both(case))
    waits = [ask(served, *both(case)), session.ask()]
    secret.append(sized_batch(100))
    served.append()
    assert all(is_waiting(each) for each in waits)
    served.append(0)
    assert [offsets_of(ended(each)) for each in waits] == [{0: 1}, {0: 1}]


def test_the_deletion_of_a_topic_ends_the_waits_for_it_and_not_the_next_ones(served: Served) -> None:
    topics = [orders(0), orders(1)]
    session = Continued(served, Case(orders(1), ErrorCode.NONE), topics)
    waits = [ask(served, *topics), session.ask()]
    assert all(is_waiting(each) for each in waits)
    served.registry.remove(TopicPartition(TP.topic, 1))
    gone = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert [errors_of(ended(each)) for each in waits] == [gone, gone]
    waits = [ask(served, *topics), session.ask()]
    assert all(is_waiting(each) for each in waits)
    served.append(0)
    assert [offsets_of(ended(each)) for each in waits] == [{0: 1}, {0: 1}]


def test_negative_limits_count_as_none(served: Served) -> None:
    response = ask(served, orders(0), orders(1), wait_ms=-1)
    assert isinstance(response, FetchResponse)
    served.append(0, 1)
    topics = [
        FetchTopic(
            name=TP.topic, partitions=[FetchPartition(partition=each, offset=0, max_bytes=-5) for each in (0, 1)]
        )
    ]
    request = FetchRequest(max_wait_ms=MAX_WAIT_MS, min_bytes=-1, max_bytes=-1, topics=topics, version=11)
    response = served.handler(served.client, request)
    response = run(response)[1] if asyncio.iscoroutine(response) else response
    assert isinstance(response, FetchResponse)
    assert offsets_of(response) == {0: 1}  # the first batch, as with a limit of 0


@pytest.mark.parametrize("version", [11, 13, LATEST])
def test_an_error_has_no_offsets_in_kafkas_protocol(served: Served, version: int) -> None:
    served.append(0)
    topic = by_id(TOPIC_ID) if version == TOPIC_IDS_FROM else orders(0)
    topic.partitions[0].offset = 9
    (result,) = ask(served, topic, version=version).topics[0].partitions
    assert (result.error, result.aborted) == (ErrorCode.OFFSET_OUT_OF_RANGE, None)
    assert result.high_watermark == (1 if version == LATEST else -1)


def test_the_last_entry_of_a_repeated_partition_counts_at_the_place_of_the_first(served: Served) -> None:
    served.append(0, 1, 1)
    response = ask(served, orders(0, 9), orders(1), FetchTopic(name=TP.topic, partitions=[]), orders(0))
    (topic,) = response.topics
    assert [(each.partition, each.error) for each in topic.partitions] == [(0, ErrorCode.NONE), (1, ErrorCode.NONE)]
