"""Every batch is stored once and in order, whatever is lost on the way: against the fake broker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from barnabas.clients.config import ProducerConfig
from barnabas.clients.errors import ClientConfigError, DeliveryTimeoutError, RefusedError
from barnabas.clients.producer.producer import Producer
from barnabas.clients.producer.sequences import MAX_EPOCH, MAX_SEQUENCE, LineSequences, restamp
from barnabas.protocol.compression import Codec
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.produce import ProducePartition, ProducePartitionResult
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.builder import RecordBatchBuilder
from barnabas.protocol.records.reader import read_records
from tests.clients.fake_broker import Action, Drop, FakeBroker, Refuse, RefusePartitions, Silence
from tests.clients.waiting import until

QUICK: dict[str, Any] = {
    "retry_backoff_ms": 5,
    "retry_backoff_max_ms": 20,
    "reconnect_backoff_ms": 5,
    "reconnect_backoff_max_ms": 20,
}


@asynccontextmanager
async def producing(broker: FakeBroker, **settings: Any) -> AsyncIterator[Producer]:
    async with Producer(ProducerConfig(bootstrap=broker.bootstrap, **{**QUICK, **settings})) as producer:
        yield producer


class Script:
    """Faults of the produce requests (or those of another API), in order; None and later requests are served."""

    def __init__(self, *actions: Action | None, api: ApiKey = ApiKey.PRODUCE) -> None:
        self._actions = list(actions)
        self._api = api

    def __call__(self, api: ApiKey, request: Any) -> Action | None:
        return self._actions.pop(0) if api is self._api and self._actions else None


def sent_batches(broker: FakeBroker) -> list[bytes]:
    """Every received batch, stored or not."""
    return [
        bytes(partition.batch)
        for request in broker.asked(ApiKey.PRODUCE)
        for topic in request.topics
        for partition in topic.partitions
    ]


def places(batches: list[bytes]) -> list[tuple[int, int, int]]:
    """Producer id, epoch and base sequence of each batch."""
    headers = [RecordBatch(batch) for batch in batches]
    return [(header.producer_id, header.producer_epoch, header.base_sequence) for header in headers]


def line_of(producer: Producer, topic: str = "lines", partition: int = 0) -> LineSequences:
    return producer._topics[topic].queues[partition].sequences


# configuration


def test_idempotence_is_on_by_default() -> None:
    assert ProducerConfig().idempotent
    assert ProducerConfig(enable_idempotence=True).idempotent
    assert ProducerConfig(max_in_flight=100).idempotent  # of one partition there is only ever one
    assert not ProducerConfig(enable_idempotence=False).idempotent


@pytest.mark.parametrize(("settings"), [{"acks": 0}, {"acks": 1}, {"retries": 0}], ids=str)
def test_conflicting_settings_turn_idempotence_off_unless_it_is_set(settings: dict[str, Any]) -> None:
    assert not ProducerConfig(**settings).idempotent
    with pytest.raises(ClientConfigError, match=f"enable_idempotence=True needs {next(iter(settings))}"):
        ProducerConfig(**settings, enable_idempotence=True)


@pytest.mark.parametrize("value", [1, 0, "true"])
def test_enable_idempotence_is_a_bool_or_none(value: Any) -> None:
    with pytest.raises(ClientConfigError, match="enable_idempotence must be True, False or None"):
        ProducerConfig(enable_idempotence=value)


# the ordinary course


async def test_one_id_serves_all_partitions_and_each_counts_its_own_records(broker: FakeBroker) -> None:
    async with producing(broker, batch_size=300) as producer:
        assert broker.asked(ApiKey.INIT_PRODUCER_ID) == []  # not before there is something to send
        for number in range(300):
            await producer.send("orders", b"%03d" % number, partition=number % 3)
    assert len(broker.asked(ApiKey.INIT_PRODUCER_ID)) == 1
    for partition in range(3):
        expected = 0
        headers = [RecordBatch(batch) for batch in broker.log("orders", partition).batches]
        assert len(headers) > 2
        for header in headers:
            assert (header.producer_id, header.producer_epoch, header.base_sequence) == (1000, 0, expected)
            expected += header.record_count


@pytest.mark.parametrize("settings", [{"acks": 1}, {"acks": 0}, {"enable_idempotence": False}], ids=str)
async def test_without_idempotence_no_id_is_requested_or_sent(broker: FakeBroker, settings: dict[str, Any]) -> None:
    async with producing(broker, **settings) as producer:
        await producer.send_and_wait("lines", b"v")
        await until(lambda: bool(broker.log("lines").batches))
    assert broker.asked(ApiKey.INIT_PRODUCER_ID) == []
    assert places(broker.log("lines").batches) == [(-1, -1, -1)]


@pytest.mark.parametrize(
    "trouble",
    [Drop(), Drop(serve_first=True), Refuse(ErrorCode.KAFKA_STORAGE_ERROR), Silence()],
    ids=str,
)
async def test_the_request_for_an_id_is_retried(broker: FakeBroker, trouble: Action) -> None:
    broker.intercept = Script(trouble, trouble, api=ApiKey.INIT_PRODUCER_ID)
    async with producing(broker, request_timeout_ms=1000) as producer:
        futures = [await producer.send("orders", b"v", partition=partition) for partition in range(3)]
        assert [(await future).offset for future in futures] == [0, 0, 0]
    assert len(broker.asked(ApiKey.INIT_PRODUCER_ID)) == 3


async def test_an_id_that_never_comes_fails_the_records_in_delivery_timeout_ms(broker: FakeBroker) -> None:
    broker.intercept = Script(*[Refuse(ErrorCode.KAFKA_STORAGE_ERROR)] * 1000, api=ApiKey.INIT_PRODUCER_ID)
    async with producing(broker, delivery_timeout_ms=100, request_timeout_ms=50) as producer:
        with pytest.raises(DeliveryTimeoutError, match=r"lines-0: .*no producer id"):
            await producer.send_and_wait("lines", b"v")


async def test_a_broker_without_producer_ids_is_an_error_that_names_the_setting(broker: FakeBroker) -> None:
    del broker.apis[ApiKey.INIT_PRODUCER_ID]
    async with producing(broker) as producer:
        with pytest.raises(RefusedError, match=r"does not serve init_producer_id.* needs enable_idempotence=False"):
            await producer.send_and_wait("lines", b"v")
    async with producing(broker, enable_idempotence=False) as producer:
        assert (await producer.send_and_wait("lines", b"v")).offset == 0


# lost answers


@pytest.mark.parametrize("codec", ["none", "lz4"])
async def test_a_batch_whose_response_was_lost_is_stored_once_and_its_futures_have_the_offsets(
    broker: FakeBroker, codec: str
) -> None:
    cut = Drop(serve_first=True)
    broker.intercept = Script(cut, None, cut, cut, None, Drop(), cut)
    async with producing(broker, batch_size=300, compression=codec) as producer:
        futures = [await producer.send("lines", b"%03d" % number) for number in range(400)]
        assert [(await future).offset for future in futures] == list(range(400))
    assert broker.log("lines").values() == [b"%03d" % number for number in range(400)]
    sent = sent_batches(broker)
    assert len(sent) == len(broker.log("lines").batches) + 5
    assert len(set(sent)) == len(broker.log("lines").batches)  # each attempt sent the same bytes


async def test_a_repeat_is_recognised_over_the_wrap_of_the_sequence(broker: FakeBroker) -> None:
    broker.intercept = Script(None, *[Drop(serve_first=True), None] * 3)
    async with producing(broker) as producer:
        await producer.send_and_wait("lines", b"first")
        line_of(producer).next_sequence = MAX_SEQUENCE - 1
        state = broker.log("lines").producers[1000]
        state.batches = [(MAX_SEQUENCE - 2, MAX_SEQUENCE - 2, 0)]
        for turn in range(3):
            futures = [await producer.send("lines", b"%d-%d" % (turn, number)) for number in range(3)]
            assert [(await future).offset for future in futures] == [1 + 3 * turn, 2 + 3 * turn, 3 + 3 * turn]
    assert [place[2] for place in places(broker.log("lines").batches)] == [0, MAX_SEQUENCE - 1, 1, 4]
    assert len(broker.log("lines").values()) == 10


async def test_a_repeat_that_the_broker_calls_a_duplicate_is_delivered_without_an_offset(broker: FakeBroker) -> None:
    broker.intercept = Script(Drop(serve_first=True), RefusePartitions(ErrorCode.DUPLICATE_SEQUENCE_NUMBER))
    async with producing(broker) as producer:
        assert (await producer.send_and_wait("lines", b"v")).offset == -1
        assert (await producer.send_and_wait("lines", b"w")).offset == 1


async def test_split_batches_share_out_the_sequences_of_the_whole(broker: FakeBroker) -> None:
    append = broker._append

    def small_only(topic: str, entry: ProducePartition) -> ProducePartitionResult:
        if len(entry.batch) > 400:
            return ProducePartitionResult(entry.partition, ErrorCode.MESSAGE_TOO_LARGE)
        return append(topic, entry)

    broker._append = small_only  # type: ignore[method-assign]
    broker.intercept = Script(*[None, Drop(serve_first=True), Drop()] * 20)
    async with producing(broker, linger_ms=5) as producer:
        futures = [await producer.send("lines", b"%03d" % number * 10) for number in range(100)]
        assert [(await future).offset for future in futures] == list(range(100))
        await producer.send_and_wait("lines", b"after")
    assert broker.log("lines").values() == [*(b"%03d" % number * 10 for number in range(100)), b"after"]
    stored = [RecordBatch(batch) for batch in broker.log("lines").batches]
    assert [(header.producer_epoch, header.base_sequence) for header in stored] == [
        (0, header.base_offset) for header in stored
    ]


# batches that fail for good


async def test_after_a_batch_that_was_given_up_a_new_epoch_locks_its_late_copies_out(broker: FakeBroker) -> None:
    async with producing(broker, request_timeout_ms=1000, delivery_timeout_ms=1000) as producer:
        await producer.send_and_wait("lines", b"before")
        broker.intercept = Script(*[Drop()] * 1000)
        with pytest.raises(DeliveryTimeoutError):
            await producer.send_and_wait("lines", b"given up")
        late = sent_batches(broker)[-1]
        broker.intercept = Script()
        count = len(sent_batches(broker))
        assert (await producer.send_and_wait("lines", b"after")).offset == 1
        assert (await producer.send_and_wait("lines", b"and on")).offset == 2
        assert len(sent_batches(broker)) == count + 2  # the broker had nothing to refuse
        result = broker._append("lines", ProducePartition(0, memoryview(late)))
        assert result.error is ErrorCode.INVALID_PRODUCER_EPOCH
    assert places(broker.log("lines").batches) == [(1000, 0, 0), (1000, 1, 0), (1000, 1, 1)]
    assert broker.log("lines").values() == [b"before", b"after", b"and on"]


async def test_a_batch_that_was_stored_and_given_up_leaves_no_gap(broker: FakeBroker) -> None:
    async with producing(broker, request_timeout_ms=1000, delivery_timeout_ms=1000) as producer:
        broker.intercept = Script(*[Drop(serve_first=True)] * 1000)
        with pytest.raises(DeliveryTimeoutError):
            await producer.send_and_wait("lines", b"stored, and nobody knows")
        broker.intercept = Script()
        assert (await producer.send_and_wait("lines", b"after")).offset == 1
    assert broker.log("lines").values() == [b"stored, and nobody knows", b"after"]


async def test_batches_that_were_never_sent_use_no_sequence(broker: FakeBroker) -> None:
    async with producing(broker, request_timeout_ms=1000, delivery_timeout_ms=1000) as producer:
        await producer.send_and_wait("lines", b"before")
        await broker.stop()
        with pytest.raises(DeliveryTimeoutError):
            await producer.send_and_wait("lines", b"never sent")
        await broker.start()
        await producer.send_and_wait("lines", b"after")
    assert places(broker.log("lines").batches) == [(1000, 0, 0), (1000, 0, 1)]


async def test_a_refused_batch_does_not_stop_later_ones(broker: FakeBroker) -> None:
    broker.intercept = Script(RefusePartitions(ErrorCode.INVALID_RECORD))
    async with producing(broker, batch_size=100) as producer:
        refused = await producer.send("lines", bytes(90))
        behind = [await producer.send("lines", bytes(90)) for _ in range(5)]
        with pytest.raises(RefusedError):
            await refused
        assert [(await future).offset for future in behind] == list(range(5))


async def test_after_the_last_epoch_a_new_id_is_fetched(broker: FakeBroker) -> None:
    async with producing(broker) as producer:
        await producer.send_and_wait("orders", b"v", partition=0)
        await producer.send_and_wait("orders", b"v", partition=1)
        line_of(producer, "orders", 0).begin(1000, MAX_EPOCH)
        broker.intercept = Script(None, RefusePartitions(ErrorCode.INVALID_RECORD))
        await producer.send_and_wait("orders", b"v", partition=0)
        with pytest.raises(RefusedError):
            await producer.send_and_wait("orders", b"v", partition=0)
        await producer.send_and_wait("orders", b"v", partition=0)
        await producer.send_and_wait("orders", b"v", partition=1)
    assert places(broker.log("orders", 0).batches) == [(1000, 0, 0), (1000, MAX_EPOCH, 0), (1001, 0, 0)]
    assert places(broker.log("orders", 1).batches) == [(1000, 0, 0), (1000, 0, 1)]


# a broker that lost track


async def test_a_broker_that_lost_the_last_batches_gets_the_next_ones_in_a_new_epoch(
    broker: FakeBroker, caplog: pytest.LogCaptureFixture
) -> None:
    log = broker.log("lines")
    async with producing(broker) as producer:
        for number in range(3):
            await producer.send_and_wait("lines", b"%d" % number)
        del log.batches[1:], log.producers[1000].batches[1:]
        log.end_offset = 1
        with caplog.at_level(logging.WARNING):
            assert (await producer.send_and_wait("lines", b"3")).offset == 1
            assert (await producer.send_and_wait("lines", b"4")).offset == 2
    assert log.values() == [b"0", b"3", b"4"]
    assert places(log.batches) == [(1000, 0, 0), (1000, 1, 0), (1000, 1, 1)]
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warning.startswith("lines-0: ")
    assert "acknowledged may be lost" in warning


async def test_a_broker_that_forgot_the_producer_gets_the_batch_again_in_a_new_epoch(broker: FakeBroker) -> None:
    async with producing(broker) as producer:
        await producer.send_and_wait("lines", b"0")
        broker.intercept = Script(RefusePartitions(ErrorCode.UNKNOWN_PRODUCER_ID))
        assert (await producer.send_and_wait("lines", b"1")).offset == 1
    assert places(broker.log("lines").batches) == [(1000, 0, 0), (1000, 1, 0)]


async def test_a_broker_that_never_accepts_a_sequence_is_given_up(broker: FakeBroker) -> None:
    broker.intercept = Script(*[RefusePartitions(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)] * 4)
    async with producing(broker, retries=3) as producer:
        with pytest.raises(RefusedError) as refusal:
            await producer.send_and_wait("lines", b"v")
        assert refusal.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert (await producer.send_and_wait("lines", b"w")).offset == 0


async def test_after_a_later_epoch_a_new_id_is_fetched_and_the_batch_sent_again(broker: FakeBroker) -> None:
    async with producing(broker) as producer:
        await producer.send_and_wait("lines", b"0")
        broker.log("lines").producers[1000].epoch = 7
        assert (await producer.send_and_wait("lines", b"1")).offset == 1
    assert places(broker.log("lines").batches) == [(1000, 0, 0), (1001, 0, 0)]


async def test_a_batch_that_may_be_stored_is_not_sent_under_a_new_id(broker: FakeBroker) -> None:
    broker.intercept = Script(Drop(serve_first=True), RefusePartitions(ErrorCode.INVALID_PRODUCER_EPOCH))
    async with producing(broker) as producer:
        with pytest.raises(RefusedError) as refusal:
            await producer.send_and_wait("lines", b"0")
        assert refusal.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
        await producer.send_and_wait("lines", b"1")
    assert broker.log("lines").values() == [b"0", b"1"]
    assert places(broker.log("lines").batches) == [(1000, 0, 0), (1001, 0, 0)]


async def test_close_does_not_wait_for_an_id(broker: FakeBroker) -> None:
    broker.intercept = Script(Silence(), api=ApiKey.INIT_PRODUCER_ID)
    producer = Producer(ProducerConfig(bootstrap=broker.bootstrap))
    await producer.start()
    future = await producer.send("lines", b"v")
    await until(lambda: bool(broker.asked(ApiKey.INIT_PRODUCER_ID)))
    async with asyncio.timeout(30):
        await producer.close(timeout_ms=1)
    assert future.exception() is not None


# batches


@pytest.mark.parametrize("codec", list(Codec))
def test_a_restamped_batch_is_the_one_that_would_have_been_built(codec: Codec) -> None:
    def built(producer_id: int, epoch: int, sequence: int) -> bytes:
        builder = RecordBatchBuilder(
            codec, max_bytes=1000, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
        )
        for number in range(5):
            builder.append(100 - number, b"key", b"%d" % number, [("h", b"v")])
        return builder.build()

    restamped = restamp(built(7, 0, 9), 8, MAX_EPOCH, MAX_SEQUENCE)
    RecordBatch(restamped).ensure_valid()
    assert places([restamped]) == [(8, MAX_EPOCH, MAX_SEQUENCE)]
    assert read_records(RecordBatch(restamped)) == read_records(RecordBatch(built(7, 0, 9)))
    if codec is not Codec.GZIP:  # its header holds the time
        assert restamped == built(8, MAX_EPOCH, MAX_SEQUENCE)
