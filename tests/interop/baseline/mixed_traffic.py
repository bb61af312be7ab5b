"""Mixed traffic for a short time: the soak's clients without its faults, and everything else that a broker keeps."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from pathlib import Path

from barnabas import Admin, AdminConfig, Producer, ProducerConfig, TopicPartition
from barnabas.clients.testing import BrokerProcess
from tests.support.authorization.entities import request
from tests.support.free_ports import free_ports
from tests.support.groups import streams_requests
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.kafka.quotas import alter_quotas
from tests.support.mirrors.torn_network import TornNetwork
from tests.torture.soak.brokers import listeners, words
from tests.torture.soak.faults import Faults
from tests.torture.soak.final_read import end_transactions
from tests.torture.soak.load.stage import Stage
from tests.torture.soak.rounds import Place, let_work

SETTINGS = {"log.cleaner.enable": "true", "metadata.log.max.record.bytes.between.snapshots": "4096"}
OPEN = "left-open"
"""The transactional id of a transaction that is not ended."""


async def write(
    start: Callable[[Mapping[str, object]], BrokerProcess], root: Path, seed: int, seconds: float, *, is_killed: bool
) -> None:
    """Let clients work at the broker that `start` starts with settings on `root`/one and `root`/two; end it."""
    async with TornNetwork(random.Random(f"network/{seed}")) as network:
        ports = free_ports(3)
        network.upstream = ("127.0.0.1", ports[2])
        own = {**listeners(ports, network.address), **SETTINGS}
        settings = dict(each.split("=", 1) for each in words(own))
        with await asyncio.to_thread(start, settings) as broker:
            stage = Stage(broker.bootstrap, network.address, 1, seed)
            faults = Faults(broker, broker, network, iter(()), None)
            directories = [root / name for name in ("one", "two")]
            _, anomalies = await let_work(
                stage, seconds, Place(broker, broker, network, ports[:2], directories, faults)
            )
            assert not anomalies, anomalies
            await end_transactions(stage, stage.transactional_ids)
            await asyncio.to_thread(_administer, broker)
            await _leave_open(broker, stage)
            if is_killed:
                await asyncio.to_thread(broker.kill)
            else:
                assert await asyncio.to_thread(broker.stop) == 0, broker.log_tail()


def _administer(broker: BrokerProcess) -> None:
    with KafkaWire(broker.host, broker.port) as wire:

        def change(api: str, version: int, **values: object) -> str:
            wire.send(request(api, version, values))
            return repr(wire.receive(api, version))

        user = {"name": "alice", "mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": bytes(32)}
        change("alter_user_scram_credentials", 0, deletions=[], upsertions=[user])
        rule = {"resource_type": 2, "resource_name": "plain", "resource_pattern_type": 4, "principal": "User:alice"}
        change("create_acls", 3, creations=[{**rule, "host": "*", "operation": 3, "permission_type": 3}])
        alter_quotas(wire, "user", "alice", producer_byte_rate=1e6)
        alter_quotas(wire, "client-id", None, request_percentage=150)
        value = {"name": "message.max.bytes", "config_operation": 0, "value": "2000000"}
        resource = {"resource_type": 4, "resource_name": "", "configs": [value]}
        change("incremental_alter_configs", 1, resources=[resource], validate_only=False)
        streams_requests.create_topic(wire, streams_requests.SOURCE, 2)
        member = streams_requests.Member(wire, "app", "member")
        member.join()
        streams_requests.settled(member, lambda answer: not streams_requests.statuses(answer))
        member.leave()


async def _leave_open(broker: BrokerProcess, stage: Stage) -> None:
    async with Admin(AdminConfig(bootstrap=broker.bootstrap)) as admin:
        await admin.delete_records({TopicPartition(stage.plain, 0): 5})
    config = ProducerConfig(bootstrap=broker.bootstrap, transactional_id=OPEN, transaction_timeout_ms=600_000)
    async with Producer(config) as producer:
        await producer.begin_transaction()
        await producer.send(stage.ledger, b"not committed", partition=0)
        # A producer that is closed aborts what is open, but for a prepared transaction.
        assert await producer.prepare_transaction() is not None
