"""Promotions in tests: promote a mirror, read what is left, cut the end off a copy."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from barnabas import Consumer, ConsumerConfig, Producer, ProducerConfig
from barnabas.broker.mirrors.stored_entries import iter_entries
from barnabas.protocol.messages.cluster.mirrors import MirrorDescription
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.daemon import Daemon
from tests.support.mirrors.copies import MIRROR, admin_of, until


async def promote(copy: Daemon, *topics: str, **options: object) -> MirrorDescription:
    async with admin_of(copy) as admin:
        await admin.mirrors.promote(MIRROR, topics, **options)  # type: ignore[arg-type]
    return await promoted(copy)


async def promoted(copy: Daemon) -> MirrorDescription:
    # The mirror's own state follows those of its topics.
    return await until(copy, lambda found: "promoting" not in {found.state, *(each.state for each in found.topics)})


async def stable(daemon: Daemon, partition: TopicPartition) -> list[bytes | None]:
    """Return what a read_committed consumer gets up to the end."""
    found: list[bytes | None] = []
    config = ConsumerConfig(bootstrap=daemon.bootstrap, isolation="read_committed", offset_reset="earliest")
    async with Consumer(config) as consumer:
        await consumer.assign([partition])
        async with asyncio.timeout(20):
            while not found or found[-1] != b"end":
                found += [each.value for each in await consumer.poll(timeout_ms=100)]
    return found


async def write_end(daemon: Daemon) -> None:
    """Write a last record to each partition, as a client does after the promotion."""
    async with Producer(ProducerConfig(bootstrap=daemon.bootstrap)) as producer:
        for number in (0, 1):
            await producer.send_and_wait("t", b"end", partition=number)


def drop_last_batches(data: Path, partition: str, count: int, *, is_noticed: bool = True) -> None:
    """Cut the last batches off the newest segment of a stopped broker's log, as if they had not been copied.

    Without `is_noticed` the next start has a clean shutdown before it, and does not raise the leader epoch.
    """
    path = max((data / partition).glob("*.log"))
    content = path.read_bytes()
    positions = [each.position for each in iter_entries(memoryview(content))]
    with path.open("r+b") as file:
        file.truncate(positions[-count])
    for snapshot in path.parent.glob("*.snapshot"):
        snapshot.unlink()
    if is_noticed:
        (data / ".kafka_cleanshutdown").unlink()


def settled(found: MirrorDescription) -> Sequence[tuple[int, int, int]]:
    """Return committed and aborted transactions and cut offsets of each partition."""
    return [(each.committed, each.aborted, each.cut) for each in found.promoted]
