"""Transactions below transaction.version 2: partitions and groups are added before they are written.

The fake coordinator refuses what was not added, and asserts that the requests have the versions of its rules.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from barnabas import Admin, AdminConfig, Consumer, ConsumerConfig, TopicPartition
from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import ProducerFencedError, RefusedError, TransactionAbortableError
from barnabas.clients.producer.prepared import PreparedTransactions
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnResponse,
    TxnPartitionResult,
    TxnTopicResult,
)
from tests.clients.fake_broker import Drop, FakeBroker, Hold, Respond
from tests.clients.producer.test_idempotence import Script, places, sent_batches
from tests.clients.producer.test_transactions import consumer_at, known, transactional
from tests.clients.producer.test_transactions_with_daemon import SMALL, everywhere, read, send_everywhere
from tests.clients.producer.test_transactions_with_daemon import transactional as at_daemon
from tests.clients.waiting import until
from tests.support.daemon import start_daemon

ORDERS = TopicPartition("orders", 1)


@pytest.fixture(autouse=True)
def old_rules(broker: FakeBroker) -> None:
    """Let the fake broker have transaction.version 0."""
    broker.coordinator.raises_epoch = False


def refused(error: ErrorCode) -> Respond:
    """Refuse the addition of lines-0."""
    results = [TxnPartitionResult(partition=0, error=error)]
    return Respond(AddPartitionsToTxnResponse(topics=[TxnTopicResult(name="lines", partitions=results)]))


async def test_a_partition_is_added_once_before_its_first_batch_and_again_in_the_next_transaction(
    broker: FakeBroker,
) -> None:
    async with transactional(broker) as producer:
        for _ in range(2):
            async with producer.transaction():
                await producer.send_and_wait("lines", b"a")
                await producer.send_and_wait("lines", b"b")
                await producer.send_and_wait("orders", b"c", partition=1)
    added = [
        [(topic.name, list(topic.partitions)) for topic in request.topics]
        for request in broker.asked(ApiKey.ADD_PARTITIONS_TO_TXN)
    ]
    assert added == [[("lines", [0])], [("orders", [1])]] * 2
    assert {request.version for request in broker.asked(ApiKey.ADD_PARTITIONS_TO_TXN)} == {3}
    assert known(broker).outcomes == [True, True]


async def test_partitions_that_are_due_together_are_added_in_one_request(broker: FakeBroker) -> None:
    async with transactional(broker) as producer, producer.transaction():
        for partition in range(3):
            await producer.send_and_wait("orders", b"connect", partition=partition)
        await asyncio.gather(*[await producer.send("lines", b"a")])
        await producer.commit_transaction()
        await producer.begin_transaction()
        for partition in range(3):
            await producer.send("orders", b"a", partition=partition)
        await producer.flush()
        (topic,) = broker.asked(ApiKey.ADD_PARTITIONS_TO_TXN)[-1].topics
        assert (topic.name, list(topic.partitions)) == ("orders", [0, 1, 2])


async def test_a_group_is_added_once_before_its_offsets(broker: FakeBroker) -> None:
    async with transactional(broker) as producer, producer.transaction():
        await producer.send_offsets_to_transaction(consumer_at({ORDERS: 3}))
        await producer.send_offsets_to_transaction(consumer_at({ORDERS: 5}))
    assert [request.group_id for request in broker.asked(ApiKey.ADD_OFFSETS_TO_TXN)] == ["g"]
    assert len(known(broker).offsets) == 2
    assert known(broker).outcomes == [True]


async def test_an_addition_waits_for_the_end_of_the_transaction_before(broker: FakeBroker) -> None:
    broker.intercept = Script(refused(ErrorCode.CONCURRENT_TRANSACTIONS), api=ApiKey.ADD_PARTITIONS_TO_TXN)
    async with transactional(broker) as producer, producer.transaction():
        await producer.send("lines", b"a")
    assert len(broker.asked(ApiKey.ADD_PARTITIONS_TO_TXN)) == 2
    assert broker.log("lines").values() == [b"a"]


async def test_a_refused_addition_makes_the_transaction_abort_only_and_the_next_one_may_succeed(
    broker: FakeBroker,
) -> None:
    broker.intercept = Script(refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED), api=ApiKey.ADD_PARTITIONS_TO_TXN)
    async with transactional(broker) as producer:
        await producer.begin_transaction()
        future = await producer.send("lines", b"a")
        with pytest.raises(TransactionAbortableError):
            await producer.commit_transaction()
        with pytest.raises(RefusedError, match="lines"):
            await future
        await producer.abort_transaction()
        async with producer.transaction():
            await producer.send("lines", b"b")
    assert places(sent_batches(broker)) == [(7000, 1, 0)]
    assert broker.log("lines").values() == [b"b"]


async def test_a_fenced_producer_learns_it_from_the_abort(broker: FakeBroker) -> None:
    async with transactional(broker) as first:
        await first.begin_transaction()
        async with transactional(broker):
            await first.send("lines", b"a")
            with pytest.raises((TransactionAbortableError, ProducerFencedError)):
                await first.commit_transaction()
            with pytest.raises(ProducerFencedError):
                await first.abort_transaction()
    assert broker.log("lines").values() == []


async def test_an_addition_whose_answer_is_lost_is_repeated(broker: FakeBroker) -> None:
    broker.intercept = Script(Drop(serve_first=True), Drop(), api=ApiKey.ADD_PARTITIONS_TO_TXN)
    async with transactional(broker) as producer, producer.transaction():
        await producer.send("lines", b"a")
    assert len(broker.asked(ApiKey.ADD_PARTITIONS_TO_TXN)) == 3
    assert known(broker).outcomes == [True]


async def test_an_addition_that_is_in_flight_at_an_abort_opens_no_later_transaction(broker: FakeBroker) -> None:
    answer = asyncio.Event()
    broker.intercept = Script(Hold(answer), api=ApiKey.ADD_PARTITIONS_TO_TXN)
    async with transactional(broker) as producer:
        await producer.begin_transaction()
        await producer.send("lines", b"a")
        await until(lambda: bool(broker.asked(ApiKey.ADD_PARTITIONS_TO_TXN)))
        aborting = asyncio.ensure_future(producer.abort_transaction())
        await asyncio.sleep(0)
        answer.set()
        await aborting
        assert known(broker).outcomes == [False]
        assert not known(broker).is_open
        async with producer.transaction():
            await producer.send("lines", b"b")
    assert broker.log("lines").values() == [b"b"]


async def test_the_rules_of_version_2_begin_in_a_new_epoch(broker: FakeBroker) -> None:
    async with transactional(broker) as producer:
        async with producer.transaction():
            await producer.send("lines", b"a")
        await producer.begin_transaction()
        await producer.send_and_wait("lines", b"b")
        broker.coordinator.will_raise_epoch = True  # raised while the transaction is open
        broker.drop_connections()
        await producer.commit_transaction()
        broker.coordinator.raises_epoch = True
        async with producer.transaction():
            await producer.send("lines", b"c")
    assert places(sent_batches(broker)) == [(7000, 0, 0), (7000, 0, 1), (7000, 1, 0)]
    assert len(broker.asked(ApiKey.ADD_PARTITIONS_TO_TXN)) == 2
    assert known(broker).outcomes == [True, True, True]


async def test_a_prepared_transaction_is_ended_by_the_rules_that_it_began_with(broker: FakeBroker) -> None:
    async with transactional(broker) as producer:
        await producer.begin_transaction()
        await producer.send("lines", b"a")
        transaction = await producer.prepare_transaction()
    assert transaction is not None
    async with PreparedTransactions(ClientConfig(bootstrap=broker.bootstrap)) as prepared:
        await prepared.commit(transaction)
        await prepared.commit(transaction)
    assert {request.version for request in broker.asked(ApiKey.END_TXN)} == {4}


@pytest.mark.parametrize("version", [0, 1])
async def test_a_broker_with_the_old_rules_commits_aborts_and_fences(tmp_path: Path, version: int) -> None:
    level = f"initial.features=transaction.version={version}"
    with start_daemon(tmp_path, level, *SMALL) as daemon:
        async with (
            at_daemon(daemon.bootstrap, "old") as producer,
            Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin,
        ):
            async with producer.transaction():
                await send_everywhere(producer, "made", b"one")
            source = TopicPartition("made", 0)
            config = ConsumerConfig(bootstrap=daemon.bootstrap, group="g", auto_commit=False, offset_reset="earliest")
            async with Consumer(config) as consumer:
                await consumer.assign([source])
                async with producer.transaction():
                    assert await consumer.poll(timeout_ms=20_000)
                    await send_everywhere(producer, "made", b"two")
                    await producer.send_offsets_to_transaction(consumer)
                committed = await admin.group_offsets("g", [source], require_stable=True)
                assert committed[source].offset == 2, "after the record and the marker of its transaction"
            await producer.begin_transaction()
            await send_everywhere(producer, "made", b"aborted")
            await producer.flush()
            await producer.abort_transaction()
            async with producer.transaction():
                await send_everywhere(producer, "made", b"three")
            (described,) = (await admin.describe_transactions(["old"])).values()
            assert not isinstance(described, RefusedError)
            assert described.producer_epoch == 0, "the end of a transaction raises it with version 2 only"
            await producer.begin_transaction()
            await send_everywhere(producer, "made", b"fenced")
            await producer.flush()
            async with at_daemon(daemon.bootstrap, "old"):
                with pytest.raises(ProducerFencedError):
                    await producer.commit_transaction()
        assert await read(daemon.bootstrap, "made") == everywhere(b"one", b"two", b"three")
