"""Producer ids, and repeated batches."""

from __future__ import annotations

import time
from pathlib import Path

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.init_producer_id import InitProducerIdRequest
from barnabas.protocol.records import Codec, RecordBatchBuilder
from tests.support.daemon import start_daemon
from tests.support.wire import WireClient


def new_id(client: WireClient) -> int:
    answer = client.call(InitProducerIdRequest())
    assert answer.producer_epoch == 0
    producer_id: int = answer.producer_id
    return producer_id


def batch(producer_id: int, sequence: int, count: int = 1, epoch: int = 0) -> bytes:
    builder = RecordBatchBuilder(
        Codec.NONE, max_bytes=1 << 20, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
    )
    for number in range(count):
        # The current time, because a producer whose last batch is older than producer.id.expiration.ms is forgotten at
        # a start.
        builder.append(int(time.time() * 1000), None, b"%d" % (sequence + number))
    return bytes(builder.build())


def test_ids_are_never_given_twice_not_even_after_a_kill(tmp_path: Path) -> None:
    seen: list[int] = []
    with start_daemon(tmp_path) as daemon:
        for clean in (False, True, False):
            with WireClient(daemon.host, daemon.port) as client:
                seen += [new_id(client) for _ in range(1200)]
            daemon.restart(clean=clean)
    assert len(set(seen)) == len(seen)
    assert seen == sorted(seen)


def test_a_batch_that_comes_twice_is_stored_once(wire: WireClient) -> None:
    wire.create_topic("twice")
    producer_id = new_id(wire)
    for _ in range(2):
        first = wire.produce("twice", batch(producer_id, 0, 3))
        assert (first.error, first.base_offset) == (ErrorCode.NONE, 0)
    assert wire.produce("twice", batch(producer_id, 3)).base_offset == 3
    assert wire.produce("twice", batch(producer_id, 0, 3)).base_offset == 0
    assert wire.end_offset("twice") == 4


def test_a_gap_and_an_old_epoch_are_refused(wire: WireClient) -> None:
    wire.create_topic("gaps")
    producer_id = new_id(wire)
    wire.produce("gaps", batch(producer_id, 0))
    assert wire.produce("gaps", batch(producer_id, 5)).error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert wire.produce("gaps", batch(producer_id, 0, epoch=1)).base_offset == 1
    assert wire.produce("gaps", batch(producer_id, 1)).error == ErrorCode.INVALID_PRODUCER_EPOCH
    assert wire.end_offset("gaps") == 2


def test_a_repeat_is_recognised_after_a_restart_and_after_a_kill(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as own:
        with WireClient(own.host, own.port) as client:
            client.create_topic("remembered", segment_bytes="1024")
            producer_id = new_id(client)
            sent = [batch(producer_id, sequence) for sequence in range(20)]
            for each in sent:
                client.produce("remembered", each)
        for clean in (True, False):
            own.restart(clean=clean)
            with WireClient(own.host, own.port) as client:
                assert client.produce("remembered", sent[19]).base_offset == 19
                assert client.end_offset("remembered") == 20
