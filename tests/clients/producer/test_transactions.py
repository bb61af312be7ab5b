"""Transactions of the producer against the fake broker: phases, lost answers, fencing, epochs and sequences."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.clients.config import ProducerConfig
from barnabas.clients.errors import (
    BrokerConnectionError,
    ClientConfigError,
    ClientError,
    CommitFailedError,
    ProducerFencedError,
    RefusedError,
    TransactionAbortableError,
    TransactionAbortedError,
)
from barnabas.clients.group_offsets import ConsumerGroupMetadata
from barnabas.clients.producer.given_identity import ProducerIdentity
from barnabas.clients.producer.prepared import PreparedTransactions
from barnabas.clients.producer.producer import Producer
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.init_producer_id import InitProducerIdResponse
from barnabas.protocol.messages.transactions.end_txn import EndTxnResponse
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.topic_partition import TopicPartition
from tests.clients.fake_broker import Action, Drop, FakeBroker, Hold, RefusePartitions, Respond, Silence
from tests.clients.fake_coordinator import FakeTransactionalId, refused_offsets
from tests.clients.producer.test_idempotence import Script, places, producing, sent_batches
from tests.clients.waiting import turns, until

ORDERS = TopicPartition("orders", 1)


def transactional(broker: FakeBroker, **settings: Any) -> AbstractAsyncContextManager[Producer]:
    return producing(broker, transactional_id="t", **settings)


def known(broker: FakeBroker) -> FakeTransactionalId:
    return broker.coordinator.ids["t"]


def consumer_at(positions: dict[TopicPartition, int], *, revoked_at: float = float("-inf"), **config: Any) -> Any:
    """A stand-in for a consumer of group `g` that is a member of generation 3."""
    return SimpleNamespace(
        positions=positions,
        revoked_at=revoked_at,
        config=SimpleNamespace(**{"auto_commit": False, **config}),
        group_metadata=lambda: ConsumerGroupMetadata("g", 3, "member-1", None),
    )


async def fail_within(producer: Producer) -> None:
    async with producer.transaction():
        await producer.send_and_wait("lines", b"a")
        raise KeyError("of the program")


async def transform(producer: Producer, consumer: Any) -> None:
    async with producer.transaction():
        await producer.send("lines", b"a")
        await producer.send_offsets_to_transaction(consumer)


# configuration


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"transactional_id": ""}, "transactional_id must be a name"),
        ({"transactional_id": 7}, "transactional_id must be a name"),
        ({"transactional_id": "t", "acks": 1}, "transactional_id needs idempotence"),
        ({"transactional_id": "t", "enable_idempotence": False}, "transactional_id needs idempotence"),
        ({"transaction_timeout_ms": 0}, "transaction_timeout_ms=0"),
        ({"two_phase_commit": True}, "two_phase_commit=True needs a transactional_id"),
        ({"two_phase_commit": 1}, "two_phase_commit must be True or False"),
    ],
)
def test_settings_that_exclude_transactions_are_refused(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ClientConfigError, match=text):
        ProducerConfig(**settings)


def test_a_transactional_producer_takes_no_given_identity() -> None:
    with pytest.raises(ClientConfigError, match="gets its identity from the broker"):
        Producer(ProducerConfig(transactional_id="t"), identity=ProducerIdentity(1, 0))


# commits


async def test_records_of_a_transaction_are_transactional_and_each_transaction_has_its_epoch(
    broker: FakeBroker,
) -> None:
    async with transactional(broker) as producer:
        for number in range(2):
            async with producer.transaction():
                await producer.send("lines", b"%d" % number)
                await producer.send("lines", b"%d" % number)
    assert places(sent_batches(broker)) == [(7000, 0, 0), (7000, 1, 0)]
    assert all(RecordBatch(batch).is_transactional for batch in sent_batches(broker))
    assert [request.transactional_id for request in broker.asked(ApiKey.PRODUCE)] == ["t", "t"]
    assert known(broker).outcomes == [True, True]


async def test_sequences_continue_where_the_epoch_stays(broker: FakeBroker) -> None:
    broker.coordinator.raises_epoch = False
    async with transactional(broker) as producer:
        for _ in range(3):
            async with producer.transaction():
                await producer.send("lines", b"a")
                await producer.send("lines", b"b")
    assert places(sent_batches(broker)) == [(7000, 0, 0), (7000, 0, 2), (7000, 0, 4)]


async def test_a_commit_delivers_lingering_records_first(broker: FakeBroker) -> None:
    async with transactional(broker, linger_ms=60_000, delivery_timeout_ms=120_000) as producer:
        await producer.begin_transaction()
        future = await producer.send("lines", b"a")
        await producer.commit_transaction()
        assert (await future).offset == 0
    assert [api for api, _ in broker.requests if api in (ApiKey.PRODUCE, ApiKey.END_TXN)] == [
        ApiKey.PRODUCE,
        ApiKey.END_TXN,
    ]


async def test_an_empty_transaction_sends_no_request(broker: FakeBroker) -> None:
    async with transactional(broker) as producer:
        async with producer.transaction():
            pass
        await producer.begin_transaction()
        await producer.abort_transaction()
    assert broker.asked(ApiKey.END_TXN) == []


@pytest.mark.parametrize("raises_epoch", [True, False])
async def test_a_lost_answer_to_a_commit_is_repeated(broker: FakeBroker, raises_epoch: bool) -> None:
    broker.coordinator.raises_epoch = raises_epoch
    broker.intercept = Script(Drop(serve_first=True), Drop(), api=ApiKey.END_TXN)
    async with transactional(broker) as producer:
        for _ in range(2):
            async with producer.transaction():
                await producer.send("lines", b"a")
    assert known(broker).outcomes == [True, True]
    assert places(sent_batches(broker))[1] == ((7000, 1, 0) if raises_epoch else (7000, 0, 1))


async def test_a_commit_without_an_answer_can_be_repeated(broker: FakeBroker) -> None:
    async with transactional(broker, api_timeout_ms=50) as producer:
        await producer.begin_transaction()
        await producer.send_and_wait("lines", b"a")
        broker.intercept = lambda api, request: Drop(serve_first=True) if api is ApiKey.END_TXN else None
        with pytest.raises(BrokerConnectionError, match=r"not known whether the commit .* call commit_transaction"):
            await producer.commit_transaction()
        with pytest.raises(ClientError, match="outcome of the last commit is not known"):
            await producer.begin_transaction()
        with pytest.raises(ClientError, match="outcome of the last commit is not known"):
            await producer.abort_transaction()
        broker.intercept = lambda api, request: None
        await producer.commit_transaction()
        async with producer.transaction():
            await producer.send("lines", b"b")
    assert known(broker).outcomes == [True, True]


async def test_close_finishes_a_cancelled_commit(broker: FakeBroker) -> None:
    held = asyncio.Event()
    async with transactional(broker) as producer:
        await producer.begin_transaction()
        await producer.send_and_wait("lines", b"a")
        broker.intercept = Script(Hold(held), api=ApiKey.END_TXN)
        commit = asyncio.create_task(producer.commit_transaction())
        await until(lambda: bool(broker.asked(ApiKey.END_TXN)))
        commit.cancel()
        with pytest.raises(asyncio.CancelledError):
            await commit
        held.set()
    assert known(broker).outcomes == [True]


async def test_a_commit_cancelled_before_its_decision_is_aborted(broker: FakeBroker) -> None:
    held = asyncio.Event()
    broker.intercept = Script(Hold(held), api=ApiKey.PRODUCE)

    async def work(producer: Producer) -> None:
        async with producer.transaction():
            await producer.send("lines", b"a")

    async with transactional(broker) as producer:
        task = asyncio.create_task(work(producer))
        await until(lambda: bool(broker.asked(ApiKey.PRODUCE)))
        task.cancel()
        await asyncio.sleep(0)
        held.set()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert known(broker).outcomes == [False]


async def test_records_are_refused_while_a_commit_is_under_way(broker: FakeBroker) -> None:
    held = asyncio.Event()
    async with transactional(broker) as producer:
        await producer.begin_transaction()
        broker.intercept = Script(Hold(held), api=ApiKey.PRODUCE)
        await producer.send("lines", b"a")
        commit = asyncio.create_task(producer.commit_transaction())
        await until(lambda: bool(broker.asked(ApiKey.PRODUCE)))
        with pytest.raises(ClientError, match="cannot send, because the transaction is being committed"):
            await producer.send("lines", b"b")
        held.set()
        await commit
    assert broker.log("lines").values() == [b"a"]


# aborts


async def test_an_exception_aborts_and_goes_on(broker: FakeBroker) -> None:
    async with transactional(broker) as producer:
        with pytest.raises(KeyError):
            await fail_within(producer)
        async with producer.transaction():
            await producer.send("lines", b"b")
    assert known(broker).outcomes == [False, True]


async def test_cancellation_aborts_and_goes_on(broker: FakeBroker) -> None:
    sent = asyncio.Event()

    async def work(producer: Producer) -> None:
        async with producer.transaction():
            await producer.send_and_wait("lines", b"a")
            sent.set()
            await asyncio.Event().wait()

    async with transactional(broker) as producer:
        task = asyncio.create_task(work(producer))
        await sent.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert known(broker).outcomes == [False]


async def test_an_abort_does_not_send_waiting_records(broker: FakeBroker) -> None:
    async with transactional(broker, linger_ms=60_000, delivery_timeout_ms=120_000) as producer:
        await producer.begin_transaction()
        future = await producer.send("lines", b"a")
        await producer.abort_transaction()
        with pytest.raises(TransactionAbortedError, match="was aborted before this was sent"):
            await future
    assert sent_batches(broker) == []
    assert broker.asked(ApiKey.END_TXN) == []


async def test_an_abort_waits_for_records_in_flight_and_sends_them_only_once(broker: FakeBroker) -> None:
    """A record that arrives after the end of its transaction would open another one."""
    async with transactional(broker) as producer:
        await producer.begin_transaction()
        broker.intercept = Script(Silence(), api=ApiKey.PRODUCE)
        future = await producer.send("lines", b"a")
        await until(lambda: bool(broker.asked(ApiKey.PRODUCE)))
        abort = asyncio.create_task(producer.abort_transaction())
        await turns()
        assert not future.done()
        assert not abort.done()
        broker.drop_connections()
        await abort
        with pytest.raises(TransactionAbortedError):
            await future
        in_order = [api for api, _ in broker.requests if api in (ApiKey.PRODUCE, ApiKey.END_TXN)]
        assert in_order == [ApiKey.PRODUCE, ApiKey.END_TXN]


async def test_an_end_is_sent_after_the_answers_of_all_records(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = asyncio.Event()
    async with transactional(broker) as producer:
        await producer.begin_transaction()
        await producer.send_and_wait("lines", b"a")
        broker.intercept = Script(Hold(held), api=ApiKey.PRODUCE)
        future = await producer.send("lines", b"b")
        await until(lambda: len(broker.asked(ApiKey.PRODUCE)) == 2)
        assert producer._transactions is not None
        requests = producer._transactions._requests
        send_end = requests.end

        async def end(*arguments: Any, **named: Any) -> Any:
            assert future.done()
            return await send_end(*arguments, **named)

        monkeypatch.setattr(requests, "end", end)
        abort = asyncio.create_task(producer.abort_transaction())
        await turns()
        held.set()
        await abort
        assert future.result().offset == 1


async def test_a_record_that_waited_for_room_is_not_sent_after_its_transaction(broker: FakeBroker) -> None:
    held = asyncio.Event()
    broker.intercept = Script(Hold(held), api=ApiKey.PRODUCE)
    async with transactional(broker, batch_size=1_000, buffer_memory=1_500) as producer:
        await producer.begin_transaction()
        first = await producer.send("lines", b"a" * 900)
        await until(lambda: bool(broker.asked(ApiKey.PRODUCE)))
        waiting = asyncio.create_task(producer.send("lines", b"b" * 900))
        await turns()
        abort = asyncio.create_task(producer.abort_transaction())
        await turns()
        held.set()
        await abort
        assert first.result().offset == 0
        with pytest.raises(ClientError, match="cannot send, because"):
            await waiting
        assert producer.buffered_bytes == 0
    assert len(broker.asked(ApiKey.PRODUCE)) == 1


async def test_a_block_may_end_its_transaction_itself(broker: FakeBroker) -> None:
    async with transactional(broker) as producer, producer.transaction():
        await producer.send_and_wait("lines", b"a")
        await producer.abort_transaction()
    assert known(broker).outcomes == [False]


async def test_close_aborts_an_open_transaction(broker: FakeBroker) -> None:
    async with transactional(broker) as producer:
        await producer.begin_transaction()
        await producer.send_and_wait("lines", b"a")
    assert known(broker).outcomes == [False]


async def test_an_unanswered_abort_is_finished_by_the_next_transaction(broker: FakeBroker) -> None:
    async with transactional(broker, api_timeout_ms=50) as producer:
        broker.intercept = lambda api, request: Drop() if api is ApiKey.END_TXN else None
        with pytest.raises(KeyError) as raised:
            await fail_within(producer)
        assert "the transaction was not aborted" in raised.value.__notes__[0]
        broker.intercept = lambda api, request: None
        async with producer.transaction():
            await producer.send("lines", b"b")
    assert known(broker).outcomes == [False, True]


# failures of records


async def test_a_record_that_is_not_delivered_makes_the_transaction_abort_only(broker: FakeBroker) -> None:
    broker.intercept = Script(RefusePartitions(ErrorCode.INVALID_RECORD, "no"), api=ApiKey.PRODUCE)
    async with transactional(broker) as producer:
        with pytest.raises(TransactionAbortableError, match="INVALID_RECORD: lines-0: no") as raised:
            async with producer.transaction():
                future = await producer.send("lines", b"a")
        assert isinstance(raised.value.__cause__, RefusedError)
        assert isinstance(future.exception(), RefusedError)
        async with producer.transaction():
            await producer.send("lines", b"b")
    assert known(broker).outcomes == [False, True]
    assert broker.log("lines").values() == [b"b"]


async def test_after_a_failure_every_call_but_abort_raises_it(broker: FakeBroker) -> None:
    broker.intercept = Script(RefusePartitions(ErrorCode.TRANSACTION_ABORTABLE), api=ApiKey.PRODUCE)
    async with transactional(broker, linger_ms=60_000, delivery_timeout_ms=120_000) as producer:
        await producer.begin_transaction()
        waiting = await producer.send("orders", b"waits", partition=0)
        failing = await producer.send("orders", b"fails", partition=1)
        producer._topics["orders"].queues[1].batches[0].linger = False
        assert producer._sender is not None
        producer._sender.mark(producer._topics["orders"].queues[1])
        await asyncio.wait([failing])
        with pytest.raises(TransactionAbortableError):
            await producer.send("orders", b"late")
        with pytest.raises(TransactionAbortableError):
            await producer.send_offsets_to_transaction(consumer_at({ORDERS: 4}))
        with pytest.raises(TransactionAbortableError):
            await producer.commit_transaction()
        with pytest.raises(TransactionAbortableError):
            await producer.begin_transaction()
        with pytest.raises(TransactionAbortableError):
            await waiting
        await producer.abort_transaction()
    assert len(broker.asked(ApiKey.PRODUCE)) == 1
    assert known(broker).outcomes == [False]


async def test_without_an_epoch_per_transaction_an_abort_in_doubt_raises_the_epoch(broker: FakeBroker) -> None:
    """A batch given up may still arrive after the abort. In the old epoch it would open another transaction."""
    broker.coordinator.raises_epoch = False
    broker.intercept = Script(Drop(), api=ApiKey.PRODUCE)
    async with transactional(broker, retries=1, retry_backoff_ms=200, retry_backoff_max_ms=200) as producer:
        await producer.begin_transaction()
        future = await producer.send("lines", b"a")
        await until(lambda: bool(broker.asked(ApiKey.PRODUCE)))
        await until(lambda: producer._topics["lines"].queues[0].paused)
        await producer.abort_transaction()
        with pytest.raises(TransactionAbortedError):
            await future
        async with producer.transaction():
            await producer.send("lines", b"b")
    assert [request.producer_epoch for request in broker.asked(ApiKey.INIT_PRODUCER_ID)] == [-1, 0]
    assert places(sent_batches(broker)) == [(7000, 0, 0), (7000, 1, 0)]
    assert known(broker).outcomes == [False, True]  # of the first one the coordinator knew the partition


async def test_a_lost_produce_is_repeated_within_the_transaction(broker: FakeBroker) -> None:
    broker.intercept = Script(Drop(serve_first=True), Drop(), api=ApiKey.PRODUCE)
    async with transactional(broker) as producer, producer.transaction():
        await producer.send("lines", b"a")
    assert broker.log("lines").values() == [b"a"]
    assert len(set(sent_batches(broker))) == 1


async def test_halves_of_a_split_batch_are_transactional(broker: FakeBroker) -> None:
    broker.intercept = Script(RefusePartitions(ErrorCode.MESSAGE_TOO_LARGE, "too large"), api=ApiKey.PRODUCE)
    async with transactional(broker) as producer, producer.transaction():
        await producer.send("lines", b"a")
        await producer.send("lines", b"b")
    assert places(sent_batches(broker)) == [(7000, 0, 0), (7000, 0, 0), (7000, 0, 1)]
    assert all(RecordBatch(batch).is_transactional for batch in sent_batches(broker))


# prepared transactions


async def test_a_prepared_transaction_survives_its_producer(broker: FakeBroker) -> None:
    async with transactional(broker, two_phase_commit=True) as producer:
        async with producer.transaction():
            await producer.send("lines", b"a")
            prepared = await producer.prepare_transaction()
            assert prepared is not None
        with pytest.raises(ClientError, match="cannot send, because the transaction is prepared"):
            await producer.send("lines", b"b")
        with pytest.raises(ClientError, match="cannot begin a transaction, because the transaction is prepared"):
            await producer.begin_transaction()
    assert prepared == ("t", 7000, 0)
    assert broker.asked(ApiKey.INIT_PRODUCER_ID)[0].enable_2pc
    assert known(broker).outcomes == []
    async with PreparedTransactions(ProducerConfig(bootstrap=broker.bootstrap)) as transactions:
        await transactions.commit(prepared)
    assert known(broker).outcomes == [True]


@pytest.mark.parametrize("commit", [True, False])
async def test_a_producer_may_end_what_it_has_prepared(broker: FakeBroker, commit: bool) -> None:
    async with transactional(broker) as producer:
        await producer.begin_transaction()
        await producer.send("lines", b"a")
        await producer.prepare_transaction()
        await (producer.commit_transaction() if commit else producer.abort_transaction())
        async with producer.transaction():
            await producer.send("lines", b"b")
    assert known(broker).outcomes == [commit, True]


async def test_an_empty_transaction_is_not_prepared(broker: FakeBroker) -> None:
    async with transactional(broker) as producer:
        await producer.begin_transaction()
        assert await producer.prepare_transaction() is None
        await producer.begin_transaction()


async def test_a_transaction_with_a_failed_record_is_not_prepared(broker: FakeBroker) -> None:
    broker.intercept = Script(RefusePartitions(ErrorCode.INVALID_RECORD), api=ApiKey.PRODUCE)
    async with transactional(broker) as producer:
        await producer.begin_transaction()
        await producer.send("lines", b"a")
        with pytest.raises(TransactionAbortableError):
            await producer.prepare_transaction()
    assert known(broker).outcomes == [False]


# misuse


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda p: p.send("lines", b"a"), "cannot send, because no transaction is open; begin one"),
        (lambda p: p.commit_transaction(), "cannot commit, because no transaction is open; begin one"),
        (lambda p: p.abort_transaction(), "cannot abort, because no transaction is open"),
        (lambda p: p.send_offsets_to_transaction(consumer_at({})), "cannot send offsets, because no transaction"),
    ],
)
async def test_calls_outside_of_a_transaction_are_refused(
    broker: FakeBroker, call: Callable[[Producer], Any], text: str
) -> None:
    async with transactional(broker) as producer:
        with pytest.raises(ClientError, match=text):
            await call(producer)
        assert producer.buffered_bytes == 0


async def test_transactions_do_not_nest(broker: FakeBroker) -> None:
    async with transactional(broker) as producer, producer.transaction():
        with pytest.raises(ClientError, match="cannot begin a transaction, because the transaction is open"):
            await producer.begin_transaction()


async def test_a_producer_without_transactional_id_has_no_transactions(broker: FakeBroker) -> None:
    async with producing(broker) as producer:
        with pytest.raises(ClientError, match="transactional_id="):
            producer.transaction()


# starts and fencing


async def test_a_start_waits_for_the_end_of_the_previous_transaction(broker: FakeBroker) -> None:
    busy = Respond(InitProducerIdResponse(producer_id=-1, producer_epoch=-1, error=ErrorCode.CONCURRENT_TRANSACTIONS))
    broker.intercept = Script(busy, busy, api=ApiKey.INIT_PRODUCER_ID)
    async with transactional(broker, transaction_timeout_ms=1234):
        assert known(broker).epoch == 0
    asked = broker.asked(ApiKey.INIT_PRODUCER_ID)
    assert [(request.transactional_id, request.transaction_timeout_ms) for request in asked] == [("t", 1234)] * 3


async def test_a_refused_start_says_why(broker: FakeBroker) -> None:
    refusal = InitProducerIdResponse(producer_id=-1, producer_epoch=-1, error=ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    broker.intercept = Script(Respond(refusal), api=ApiKey.INIT_PRODUCER_ID)
    with pytest.raises(RefusedError, match=r"transaction\.max\.timeout\.ms"):
        async with transactional(broker):
            pass
    await until(lambda: broker.open_connections == 0)


async def test_two_phase_commit_is_refused_by_a_broker_that_would_give_the_transaction_a_timeout(
    broker: FakeBroker,
) -> None:
    broker.apis[ApiKey.INIT_PRODUCER_ID] = (0, 5)
    with pytest.raises(RefusedError, match="serves no two-phase commit"):
        async with transactional(broker, two_phase_commit=True):
            pass
    assert broker.asked(ApiKey.INIT_PRODUCER_ID) == []


async def test_a_second_producer_fences_the_first(broker: FakeBroker) -> None:
    async with transactional(broker) as first:
        await first.begin_transaction()
        await first.send_and_wait("lines", b"first")
        async with transactional(broker) as second:
            with pytest.raises(ProducerFencedError, match="another producer has started"):
                await first.commit_transaction()
            for call in (first.begin_transaction, first.commit_transaction, first.abort_transaction):
                with pytest.raises(ProducerFencedError):
                    await call()
            with pytest.raises(ProducerFencedError):
                await first.send("lines", b"late")
            async with second.transaction():
                await second.send("lines", b"second")
    assert known(broker).outcomes == [False, True]


async def test_a_fenced_record_ends_its_block_with_the_fencing(broker: FakeBroker) -> None:
    async def replaced_within(first: Producer) -> None:
        async with first.transaction():
            await first.send_and_wait("lines", b"first")
            async with transactional(broker) as second, second.transaction():
                await second.send_and_wait("lines", b"second")
            await first.send("lines", b"late")

    async with transactional(broker) as first:
        with pytest.raises(ProducerFencedError):
            await replaced_within(first)
    assert broker.log("lines").values() == [b"first", b"second"]


async def test_other_refusals_of_a_commit_are_final(broker: FakeBroker) -> None:
    code = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    broker.intercept = Script(Respond(EndTxnResponse(error=code)), api=ApiKey.END_TXN)
    async with transactional(broker) as producer:
        with pytest.raises(RefusedError) as raised:
            async with producer.transaction():
                await producer.send("lines", b"a")
        assert raised.value.code is code
        with pytest.raises(RefusedError) as again:
            await producer.begin_transaction()
        assert again.value.code is code


@pytest.mark.parametrize("code", [ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE])
async def test_a_commit_that_can_be_aborted_is_aborted(broker: FakeBroker, code: ErrorCode) -> None:
    broker.intercept = Script(Respond(EndTxnResponse(error=code)), api=ApiKey.END_TXN)
    async with transactional(broker) as producer:
        with pytest.raises(TransactionAbortableError):
            async with producer.transaction():
                await producer.send("lines", b"a")
        async with producer.transaction():
            await producer.send("lines", b"b")
    assert known(broker).outcomes == [False, True]


# offsets of groups


async def test_offsets_are_sent_with_the_membership_of_their_consumer(broker: FakeBroker) -> None:
    async with transactional(broker) as producer:
        async with producer.transaction():
            assert await producer.send_offsets_to_transaction(consumer_at({ORDERS: 4})) == {ORDERS: 4}
        async with producer.transaction():
            await producer.send_offsets_to_transaction(consumer_at({ORDERS: 9}), {ORDERS: 7})
    first, second = known(broker).offsets
    assert (first.group_id, first.generation, first.member_id) == ("g", 3, "member-1")
    assert [(p.partition, p.offset) for p in first.topics[0].partitions] == [(1, 4)]
    assert [(p.partition, p.offset) for p in second.topics[0].partitions] == [(1, 7)]
    assert (first.producer_epoch, second.producer_epoch) == (0, 1)
    assert known(broker).outcomes == [True, True]


async def test_offsets_that_are_refused_for_a_moment_are_sent_again(broker: FakeBroker) -> None:
    actions: list[ErrorCode] = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.CONCURRENT_TRANSACTIONS]

    def refuse(api: ApiKey, request: Any) -> Action | None:
        if api is ApiKey.TXN_OFFSET_COMMIT and actions:
            return Respond(refused_offsets(request, actions.pop(0)))
        return None

    broker.intercept = refuse
    async with transactional(broker) as producer, producer.transaction():
        await producer.send_offsets_to_transaction(consumer_at({ORDERS: 4}))
    assert len(known(broker).offsets) == 1
    assert known(broker).outcomes == [True]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.ILLEGAL_GENERATION, CommitFailedError),
        (ErrorCode.UNKNOWN_MEMBER_ID, CommitFailedError),
        (ErrorCode.FENCED_INSTANCE_ID, RefusedError),
        (ErrorCode.TRANSACTION_ABORTABLE, TransactionAbortableError),
    ],
)
async def test_offsets_of_a_replaced_consumer_abort_the_transaction(
    broker: FakeBroker, code: ErrorCode, kind: type[Exception]
) -> None:
    broker.intercept = lambda api, request: (
        Respond(refused_offsets(request, code)) if api is ApiKey.TXN_OFFSET_COMMIT else None
    )
    async with transactional(broker) as producer:
        with pytest.raises(kind):
            await transform(producer, consumer_at({ORDERS: 4}))
        await producer.begin_transaction()
        with pytest.raises(kind):
            await producer.send_offsets_to_transaction(consumer_at({ORDERS: 4}))
        with pytest.raises(TransactionAbortableError):
            await producer.commit_transaction()
        await producer.abort_transaction()
    assert True not in known(broker).outcomes


async def test_offsets_of_a_fenced_producer_end_in_its_fencing(broker: FakeBroker) -> None:
    async with transactional(broker) as producer:
        await producer.begin_transaction()
        known(broker).epoch += 2
        with pytest.raises(TransactionAbortableError):
            await producer.send_offsets_to_transaction(consumer_at({ORDERS: 4}))
        with pytest.raises(ProducerFencedError):
            await producer.abort_transaction()


async def test_offsets_after_the_transactions_timeout_are_aborted(broker: FakeBroker) -> None:
    async with transactional(broker) as producer:
        await producer.begin_transaction()
        known(broker).epoch += 1  # the coordinator has aborted in the next epoch, which the producer may have
        with pytest.raises(TransactionAbortableError):
            await producer.send_offsets_to_transaction(consumer_at({ORDERS: 4}))
        await producer.abort_transaction()
        async with producer.transaction():
            await producer.send_offsets_to_transaction(consumer_at({ORDERS: 4}))
    assert known(broker).outcomes == [True]


async def test_a_consumer_that_commits_by_itself_is_refused(broker: FakeBroker) -> None:
    async with transactional(broker) as producer, producer.transaction():
        with pytest.raises(ClientError, match="auto_commit=False"):
            await producer.send_offsets_to_transaction(consumer_at({ORDERS: 4}, auto_commit=True))


async def test_partitions_revoked_within_a_transaction_make_it_abort_only(broker: FakeBroker) -> None:
    """Positions of revoked partitions are gone, so a commit would leave the records read from them uncommitted."""
    async with transactional(broker) as producer:
        before = asyncio.get_running_loop().time()
        await asyncio.sleep(0.001)
        async with producer.transaction():
            await producer.send_offsets_to_transaction(consumer_at({ORDERS: 4}, revoked_at=before))
        with pytest.raises(TransactionAbortableError, match="gave partitions up after the transaction began"):
            await transform(producer, consumer_at({}, revoked_at=float("inf")))
    assert known(broker).outcomes == [True]
