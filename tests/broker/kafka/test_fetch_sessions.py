"""Fetch sessions (KIP-227) over the wire: the cases of Kafka's FetchSessionTest, and waits."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.topic_name import MAX_TOPIC_NAME_LENGTH
from tests.broker.conftest import Batch
from tests.support.daemon import Daemon
from tests.support.kafka.fetch_sessions import SessionFetcher
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.metrics import wait_for_metric
from tests.support.wire import WireClient

VERSIONS = [7, 12, 13, 18]
WAITING = "barnabas_fetches_waiting"


@pytest.fixture
def kafka(daemon: Daemon) -> Iterator[KafkaWire]:
    with KafkaWire(daemon.host, daemon.port) as client:
        yield client


@pytest.fixture
def fetcher(kafka: KafkaWire) -> SessionFetcher:
    return SessionFetcher(kafka)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_incremental_response_has_only_what_changed(
    kafka: KafkaWire, wire: WireClient, batch: Batch, version: int
) -> None:
    fetcher = SessionFetcher(kafka, version)
    topic = f"changes.{version}"
    wire.create_topic(topic, partitions=3)
    opened = fetcher.open({(topic, number): 0 for number in range(3)})
    assert opened.session_id > 0
    assert opened.results == [(topic, number, 0, 0, 0, 0) for number in range(3)]
    assert fetcher.fetch({}).results == []
    wire.produce(topic, batch(), partition=1)
    (result,) = fetcher.fetch({}).results
    assert result[:5] == (topic, 1, 0, 1, 0)
    assert result[5] > 0
    assert fetcher.fetch({}).places == [(topic, 1)]  # the client's position is still before the record
    assert fetcher.fetch({(topic, 1): 1}).results == []
    assert (fetcher.session_id, fetcher.epoch) == (opened.session_id, 5)


@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_are_added_and_forgotten(kafka: KafkaWire, wire: WireClient, batch: Batch, version: int) -> None:
    fetcher = SessionFetcher(kafka, version)
    topic = f"added.{version}"
    wire.create_topic(topic, partitions=3)
    fetcher.open({(topic, 0): 0})
    assert fetcher.fetch({(topic, 1): 0, (topic, 2): 0}).places == [(topic, 1), (topic, 2)]
    for number in range(3):
        wire.produce(topic, batch(), partition=number)
    assert fetcher.fetch({}, forget=[(topic, 1)]).places == [(topic, 0), (topic, 2)]
    assert fetcher.fetch({(topic, 1): 1}).places == [(topic, 0), (topic, 2), (topic, 1)]


def test_a_session_without_partitions_is_closed(fetcher: SessionFetcher, wire: WireClient) -> None:
    wire.create_topic("emptied", partitions=1)
    opened = fetcher.open({("emptied", 0): 0})
    assert fetcher.fetch({}, forget=[("emptied", 0)], max_wait_ms=20_000).session_id == 0
    refused = fetcher.fetch({}, session_id=opened.session_id, epoch=2)
    assert (refused.error, refused.session_id) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_unknown_sessions_and_wrong_epochs_are_refused_without_partitions(
    kafka: KafkaWire, wire: WireClient, version: int
) -> None:
    fetcher = SessionFetcher(kafka, version)
    topic = f"refused.{version}"
    wire.create_topic(topic, partitions=1)
    place = {(topic, 0): 0}
    for session_id in (0, -1, 2**31 - 1):
        unknown = fetcher.fetch(place, session_id=session_id, epoch=1)
        assert (unknown.error, unknown.session_id, unknown.results) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, [])
    fetcher.open(place)
    for epoch in (2, -2):
        wrong = fetcher.fetch(place, epoch=epoch)
        assert (wrong.error, wrong.session_id, wrong.results) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0, [])
    assert fetcher.fetch({}).error == 0  # the session is unharmed
    assert fetcher.fetch({}, epoch=1).error == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_a_session_keeps_no_name_that_is_too_long_for_a_topic(kafka: KafkaWire, wire: WireClient) -> None:
    wire.create_topic("short", partitions=1)
    fetcher = SessionFetcher(kafka, 12)
    long_name = "x" * (MAX_TOPIC_NAME_LENGTH + 1)
    refused = fetcher.fetch({("short", 0): 0, (long_name, 0): 0}, epoch=0)
    assert (refused.session_id, {place[0]: place[2] for place in refused.results}) == (
        0,
        {"short": 0, long_name: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
    )
    fetcher.open({("short", 0): 0, (long_name[1:], 0): 0})
    assert fetcher.session_id > 0
    assert fetcher.fetch({(long_name, 0): 0}).error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_names_and_ids_are_not_mixed_in_a_session(kafka: KafkaWire, wire: WireClient) -> None:
    wire.create_topic("mixed", partitions=1)
    for first, second in ((12, 13), (13, 12)):
        fetcher = SessionFetcher(kafka, first)
        fetcher.open({("mixed", 0): 0})
        fetcher.version = second
        refused = fetcher.fetch({})
        assert (refused.error, refused.session_id) == (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, 0)
        fetcher.version = first
        assert fetcher.fetch({}).error == 0


def test_a_full_request_closes_the_session_that_it_names(fetcher: SessionFetcher, wire: WireClient) -> None:
    wire.create_topic("closed", partitions=1)
    for epoch, has_session in ((0, True), (-1, False)):
        old = fetcher.open({("closed", 0): 0}).session_id
        new = fetcher.fetch({("closed", 0): 0}, epoch=epoch)
        assert (new.session_id != 0, new.session_id == old) == (has_session, False)
        assert new.places == [("closed", 0)]
        refused = fetcher.fetch({}, session_id=old, epoch=1)
        assert refused.error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_partitions_with_records_move_to_the_end_of_the_order(
    fetcher: SessionFetcher, wire: WireClient, batch: Batch
) -> None:
    wire.create_topic("order", partitions=4)
    for number in range(4):
        wire.produce("order", batch(b"x" * 1000), partition=number)
    fetcher.open({("order", number): 1 for number in range(4)})
    assert fetcher.fetch({("order", number): 0 for number in (3, 1)}).places == [("order", 1), ("order", 3)]
    everything = {("order", number): 0 for number in range(4)}
    assert fetcher.fetch(everything, max_bytes=10).places == [("order", 0)]
    found = [fetcher.fetch({}, max_bytes=10).places for _ in range(5)]
    assert found == [[("order", number)] for number in (2, 1, 3, 0, 2)]


def test_an_error_is_sent_with_every_response_and_the_offsets_once_it_is_gone(
    fetcher: SessionFetcher, wire: WireClient
) -> None:
    wire.create_topic("errors", partitions=2)
    out_of_range = ("errors", 0, int(ErrorCode.OFFSET_OUT_OF_RANGE), -1, -1, 0)
    unknown = ("errors", 7, int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), -1, -1, 0)
    opened = fetcher.open({("errors", 7): 0, ("errors", 0): 5, ("errors", 1): 0})
    # Partitions that were not read come last.
    assert opened.results == [out_of_range, ("errors", 1, 0, 0, 0, 0), unknown]
    assert fetcher.fetch({}, max_wait_ms=20_000).results == [out_of_range, unknown]
    assert fetcher.fetch({("errors", 0): 0}).results == [("errors", 0, 0, 0, 0, 0), unknown]
    assert fetcher.fetch({}, forget=[("errors", 7)]).results == []


def test_deleted_records_change_the_log_start_offset(fetcher: SessionFetcher, wire: WireClient, batch: Batch) -> None:
    wire.create_topic("start", partitions=1)
    wire.produce("start", batch(b"1", b"2"))
    fetcher.open({("start", 0): 2})
    assert fetcher.fetch({}).results == []
    delete = DeleteRecordsTopic(name="start", partitions=[DeleteRecordsPartition(partition=0, offset=1)])
    wire.call(DeleteRecordsRequest(topics=[delete]))
    assert fetcher.fetch({}).results == [("start", 0, 0, 2, 1, 0)]
    assert fetcher.fetch({}).results == []


def test_a_deleted_topic_and_one_that_is_created_again(
    daemon: Daemon, fetcher: SessionFetcher, wire: WireClient, batch: Batch
) -> None:
    wire.create_topic("again", partitions=1)
    wire.create_topic("stays", partitions=1)
    unknown_id = UUID(int=77)
    fetcher.ids["never"] = unknown_id
    fetcher.open({("again", 0): 0, ("stays", 0): 0, ("never", 0): 0})
    fetcher.send({}, forget=[("never", 0)], max_wait_ms=20_000)
    wire.delete_topic("again")
    gone = ("again", 0, int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), -1, -1, 0)
    assert fetcher.receive().results == [gone]
    wait_for_metric(daemon, WAITING, 0)
    fetcher.send({}, max_wait_ms=20_000)
    wait_for_metric(daemon, WAITING, 1)
    wire.produce("stays", batch())
    assert [each[:5] for each in fetcher.receive().results] == [("stays", 0, 0, 1, 0), gone[:5]]
    assert fetcher.fetch({("stays", 0): 1}).results == [gone]
    wire.create_topic("again", partitions=1)
    assert fetcher.fetch({}).results == [("again", 0, int(ErrorCode.INCONSISTENT_TOPIC_ID), -1, -1, 0)]
    forgotten = fetcher.fetch({}, forget=[("again", 0)])
    assert forgotten.results == []
    del fetcher.ids["again"]
    assert fetcher.fetch({("again", 0): 0}).results == [("again", 0, 0, 0, 0, 0)]


def test_an_unknown_topic_id_stays_unknown(fetcher: SessionFetcher) -> None:
    fetcher.ids["never"] = UUID(int=78)
    unknown = ("never", 0, int(ErrorCode.UNKNOWN_TOPIC_ID), -1, -1, 0)
    assert fetcher.open({("never", 0): 0}).results == [unknown]
    assert fetcher.fetch({}).results == [unknown]


def test_a_deleted_topic_is_found_again_by_its_name(kafka: KafkaWire, wire: WireClient) -> None:
    fetcher = SessionFetcher(kafka, 12)
    wire.create_topic("named", partitions=1)
    fetcher.open({("named", 0): 0})
    wire.delete_topic("named")
    assert fetcher.fetch({}).results == [("named", 0, int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), -1, -1, 0)]
    wire.create_topic("named", partitions=1)
    assert fetcher.fetch({}).results == [("named", 0, 0, 0, 0, 0)]
    assert fetcher.fetch({}).results == []


def test_a_wait_ends_when_enough_bytes_are_appended_to_any_partition(
    fetcher: SessionFetcher, wire: WireClient, batch: Batch
) -> None:
    wire.create_topic("waits", partitions=5)
    fetcher.open({("waits", number): 0 for number in range(5)})
    size = len(batch(b"x" * 100))
    for turn in range(3):
        fetcher.send({("waits", number): turn for number in range(5)}, max_wait_ms=20_000, min_bytes=2 * size + 1)
        for number in (4, 0, 2, 1, 3):
            wire.produce("waits", batch(b"x" * 100), partition=number)
            if number == 2:
                answer = fetcher.receive()
        assert len(answer.results) == 3
        fetcher.fetch({})  # the other two


def test_settled_partitions_wake_a_later_wait(fetcher: SessionFetcher, wire: WireClient, batch: Batch) -> None:
    wire.create_topic("settled", partitions=5)
    fetcher.open({("settled", number): 0 for number in range(5)})
    for turn in range(3):
        fetcher.send({("settled", 3): turn} if turn else {}, max_wait_ms=20_000)
        wire.produce("settled", batch(), partition=3)
        assert fetcher.receive().places == [("settled", 3)]
    assert fetcher.fetch({("settled", 3): 3}).results == []
    wire.produce("settled", batch(), partition=0)  # while no fetch waits
    assert fetcher.fetch({}, max_wait_ms=20_000).places == [("settled", 0)]


def test_a_wait_without_records_ends_with_an_empty_response(fetcher: SessionFetcher, wire: WireClient) -> None:
    wire.create_topic("quiet", partitions=2)
    opened = fetcher.open({("quiet", 0): 0, ("quiet", 1): 0})
    answer = fetcher.fetch({}, max_wait_ms=30)
    assert (answer.session_id, answer.results) == (opened.session_id, [])


def test_a_waiting_fetch_is_refused_once_its_session_has_the_next_request(
    daemon: Daemon, fetcher: SessionFetcher, wire: WireClient
) -> None:
    wire.create_topic("twice", partitions=1)
    fetcher.open({("twice", 0): 0})
    wait_for_metric(daemon, WAITING, 0)
    fetcher.send({}, max_wait_ms=20_000)
    wait_for_metric(daemon, WAITING, 1)
    with KafkaWire(daemon.host, daemon.port) as other:
        second = SessionFetcher(other, ids=fetcher.ids, session_id=fetcher.session_id, epoch=2)
        assert second.fetch({}).error == 0
    refused = fetcher.receive()
    assert (refused.error, refused.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, fetcher.session_id)


def test_a_waiting_fetch_is_answered_when_its_session_is_closed(
    daemon: Daemon, fetcher: SessionFetcher, wire: WireClient
) -> None:
    wire.create_topic("taken", partitions=1)
    opened = fetcher.open({("taken", 0): 0})
    wait_for_metric(daemon, WAITING, 0)
    fetcher.send({}, max_wait_ms=20_000)
    wait_for_metric(daemon, WAITING, 1)
    with KafkaWire(daemon.host, daemon.port) as other:
        SessionFetcher(other, ids=fetcher.ids).fetch({}, session_id=opened.session_id, epoch=-1)
    answer = fetcher.receive()
    assert (answer.error, answer.session_id, answer.results) == (0, opened.session_id, [])


def test_a_change_of_the_isolation_level_reads_everything_again(
    fetcher: SessionFetcher, wire: WireClient, batch: Batch
) -> None:
    wire.create_topic("levels", partitions=2)
    fetcher.open({("levels", 0): 0, ("levels", 1): 0}, isolation=1)
    wire.produce("levels", batch(), partition=1)
    assert fetcher.fetch({}, isolation=0).places == [("levels", 1)]
    assert fetcher.fetch({("levels", 1): 1}, isolation=1).results == []


def test_a_followers_requests_are_refused_in_a_session_too(fetcher: SessionFetcher, wire: WireClient) -> None:
    wire.create_topic("follower", partitions=1)
    not_leader = ("follower", 0, int(ErrorCode.NOT_LEADER_OR_FOLLOWER), -1, -1, 0)
    opened = fetcher.open({("follower", 0): 0}, replica_id=9)
    assert opened.session_id > 0
    assert opened.results == [not_leader]
    assert fetcher.fetch({}, replica_id=9).results == [not_leader]
    assert fetcher.fetch({}).results == [("follower", 0, 0, 0, 0, 0)]
