"""Log directories as left by brokers, for the tools that inspect them."""

from __future__ import annotations

import asyncio
import shutil
import struct
from pathlib import Path

from barnabas import Consumer, ConsumerConfig, TopicPartition
from barnabas.broker.metadata.log.batches import encode_change
from barnabas.broker.metadata.log.log_replay import METADATA_DIRECTORY, replay_metadata_directory
from barnabas.protocol.metadata.records import MetadataRecord
from barnabas.protocol.records.record import Record
from tests.support.daemon import start_daemon
from tests.support.storage.records import TIMESTAMP, build, plain
from tests.support.wire import WireClient

ORDERS = 3
RECORDS = 30


def make_directories(scratch: Path, *, transaction_version: int = 0) -> Path:
    """Create log directories `one` and `two` in a directory, and return that directory.

    They have the topics `orders` (3 partitions) and `small` (tiny segments), and the group `workers`. Every Kafka
    supports their feature levels if `transaction_version` is 0.
    """
    data = scratch / "data"
    settings = (
        f"log.dirs={data}/one,{data}/two",
        "offsets.topic.num.partitions=2",
        f"initial.features=transaction.version={transaction_version}",
    )
    with start_daemon(scratch, *settings) as daemon:
        with WireClient(daemon.host, daemon.port) as wire:
            wire.create_topic("orders", ORDERS)
            wire.create_topic("small", 1, segment_bytes="16384")
            for number in range(RECORDS):
                assert wire.produce("orders", plain(1), number % ORDERS).error == 0
        asyncio.run(_commit(daemon.bootstrap))
        assert daemon.stop() == 0
    return data


async def _commit(bootstrap: str) -> None:
    partition = TopicPartition("orders", 0)
    async with Consumer(ConsumerConfig(bootstrap=bootstrap, group="workers")) as consumer:
        await consumer.assign([partition])
        await consumer.commit({partition: 5})


def copy_of(data: Path, scratch: Path) -> tuple[Path, Path]:
    """Copy both log directories; return their paths."""
    shutil.copytree(data, scratch / "data")
    return scratch / "data" / "one", scratch / "data" / "two"


def append_metadata(log_dir: Path, *records: MetadataRecord) -> None:
    """Append records to the metadata log in its last leader epoch."""
    metadata = log_dir / METADATA_DIRECTORY
    replayed = replay_metadata_directory(metadata)
    data, _ = encode_change(
        records,
        level=replayed.image.level or 19,
        base_offset=replayed.image.end_offset,
        leader_epoch=replayed.last_epoch,
        timestamp_ms=0,
    )
    with max(metadata.glob("*.log")).open("ab") as file:
        file.write(data)


def put_transaction_state(log_dir: Path, transactional_id: str, producer_id: int, status: int) -> None:
    """Create `__transaction_state-0` with the state of one transactional id in epoch 3, in Kafka's version 1."""
    key = struct.pack(">hh", 0, len(transactional_id)) + transactional_id.encode()
    no_partitions, no_tags = b"\x01", b"\x00"
    value = (
        struct.pack(">hqhib", 1, producer_id, 3, 60_000, status) + no_partitions + struct.pack(">qq", 1, 1) + no_tags
    )
    directory = log_dir / "__transaction_state-0"
    directory.mkdir()
    (directory / f"{0:020d}.log").write_bytes(build([Record(0, TIMESTAMP, key, value)]))
