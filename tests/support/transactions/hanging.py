"""Transactions that no coordinator knows."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from typing import Final

from barnabas import Admin, AdminConfig
from barnabas.protocol.records.builder import RecordBatchBuilder
from tests.support.daemon import Daemon
from tests.support.kafka.kafka_wire import KafkaWire, produce_request

OLD_PRODUCE_VERSION: Final = 9
"""Of clients that add partitions to their transactions themselves."""

STRANGER_ID: Final = 990_001


def produce_without_coordinator(daemon: Daemon, topic: str, partition: int) -> None:
    """Store a transactional batch of an hour ago whose producer no coordinator knows, as brokers before 3.6 did."""
    name = "transaction.partition.verification.enable"

    async def verify(is_enabled: bool) -> None:
        async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
            await admin.alter_configs(broker="", set_to={name: str(is_enabled).lower()})

    builder = RecordBatchBuilder(
        max_bytes=1 << 16, producer_id=STRANGER_ID, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    builder.append(int((time.time() - 3600) * 1000), None, b"hanging")
    request = dataclasses.replace(
        produce_request(OLD_PRODUCE_VERSION, topic, builder.build(), partition=partition, acks=-1),
        transactional_id="forgotten",
    )
    asyncio.run(verify(False))
    with KafkaWire(daemon.host, daemon.port) as kafka:
        kafka.send(request)
        (answer,) = kafka.receive("produce", OLD_PRODUCE_VERSION).responses
    asyncio.run(verify(True))
    assert [each.error_code for each in answer.partition_responses] == [0]
