"""A producer that continues under the id and epoch of an earlier one."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from barnabas import Admin, AdminConfig, Consumer, ConsumerConfig, Producer, ProducerConfig, TopicPartition
from barnabas.clients.errors import ClientConfigError, RefusedError
from barnabas.clients.producer.given_identity import ProducerIdentity, new_identity
from barnabas.protocol.errors import ErrorCode
from tests.support.daemon import start_daemon

RECORDS = [b"%04d" % number for number in range(400)]


def config_of(bootstrap: str) -> ProducerConfig:
    return ProducerConfig(bootstrap=bootstrap, batch_size=200)  # more batches than the five that a broker remembers


async def send(config: ProducerConfig, identity: ProducerIdentity, values: list[bytes]) -> int:
    """Send all values in order except stored ones, like a repeated task. Returns how many were stored."""
    async with Producer(config, identity=ProducerIdentity(identity.producer_id, identity.epoch)) as producer:
        assert producer.identity is not None
        await producer.resume("t")
        stored = producer.identity.stored(TopicPartition("t", 0))
        futures = [await producer.send("t", value, partition=0) for value in values[stored:]]
        await producer.flush()
        for future in futures:
            await future
    return stored


async def read(bootstrap: str) -> list[bytes | None]:
    partition = TopicPartition("t", 0)
    async with Consumer(ConsumerConfig(bootstrap=bootstrap, offset_reset="earliest")) as consumer:
        await consumer.assign([partition])
        end = (await consumer.end_offsets([partition]))[partition]
        values: list[bytes | None] = []
        while len(values) < end:
            values += [record.value for record in await consumer.poll()]
    return values


async def test_repeated_records_are_stored_once_over_attempts_epochs_and_a_restart(tmp_path: Path) -> None:
    daemon = start_daemon(tmp_path)
    try:
        config = config_of(daemon.bootstrap)
        async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
            await admin.create_topic("t", partitions=2)
        identity = await new_identity(config)
        assert await send(config, identity, RECORDS[:150]) == 0
        assert await send(config, identity, RECORDS[:300]) == 150
        daemon.kill()
        daemon = start_daemon(tmp_path)
        config = dataclasses.replace(config, bootstrap=daemon.bootstrap)
        assert await send(config, identity, RECORDS) == 300
        assert await send(config, identity, RECORDS) == len(RECORDS)
        following = ProducerIdentity(identity.producer_id, identity.epoch + 1)
        assert await send(config, following, RECORDS[:10]) == 0
        assert await read(daemon.bootstrap) == [*RECORDS, *RECORDS[:10]]
        with pytest.raises(RefusedError, match="has gone on to epoch 1") as refused:
            await send(config, identity, RECORDS)
        assert refused.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    finally:
        daemon.stop()


async def test_an_older_attempt_that_still_runs_adds_nothing(tmp_path: Path) -> None:
    daemon = start_daemon(tmp_path)
    try:
        config = config_of(daemon.bootstrap)
        async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
            await admin.create_topic("t", partitions=1)
        identity = await new_identity(config)
        async with Producer(config, identity=identity) as older:
            await older.resume("t")
            for value in RECORDS[:20]:
                await older.send("t", value, partition=0)
            await older.flush()
            assert await send(config, identity, RECORDS) == 20
            late = [await older.send("t", value, partition=0) for value in RECORDS[20:60]]
            await older.flush()
            for future in late:
                error = future.exception()  # recognised as a repeat where the batches are alike, else refused
                assert error is None or isinstance(error, RefusedError)
        assert await read(daemon.bootstrap) == RECORDS
    finally:
        daemon.stop()


def test_an_identity_needs_idempotence() -> None:
    with pytest.raises(ClientConfigError, match="needs idempotence"):
        Producer(ProducerConfig(acks=1), identity=ProducerIdentity(1, 0))
