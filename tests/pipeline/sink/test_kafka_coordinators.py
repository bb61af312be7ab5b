"""Ending transactions while coordinators move, load and disconnect, against brokers that answer by a script."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from kio.schema.errors import ErrorCode as KioError
from kio.schema.types import BrokerId
from kio.serial import entity_reader

from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import (
    BrokerConnectionError,
    BrokerTimeoutError,
    PreparedTransactionLostError,
    ProtocolViolationError,
    RefusedError,
)
from barnabas.clients.producer.prepared import PreparedTransaction
from barnabas.pipeline.sink.kafka.transactions import KafkaTransactions
from barnabas.protocol.errors import ErrorCode
from tests.support.kafka.kafka_wire import framed, message_type, read, schema, written

VERSIONS = {3: ("metadata", 4), 10: ("find_coordinator", 1), 18: ("api_versions", 0), 22: ("init_producer_id", 1)}
VERSIONS |= {26: ("end_txn", 2), 65: ("describe_transactions", 0)}
PREPARED = PreparedTransaction("id", 4001, 3)
DISCONNECT = b""
CUT = b"\x00\x00\x00\x63cut"


class ScriptedBroker:
    """Answers each API with the next scripted answer, or as a broker that has done everything."""

    def __init__(self) -> None:
        self.port = 0
        self.coordinator_port = 0
        self.served = dict(VERSIONS)
        self.script: dict[str, deque[Any]] = {}
        self.calls: Counter[str] = Counter()
        self.connections = 0
        self.last: dict[str, Any] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                frame = await reader.readexactly(size)
                api, version = VERSIONS[int.from_bytes(frame[:2], "big")]
                if api == "api_versions" and frame[2:4] != b"\0\0":  # as an old broker, which has version 0 only
                    writer.write(framed(frame[4:8] + KioError.unsupported_version.to_bytes(2, "big") + bytes(4)))
                    continue
                kind = message_type(api, version, "request")
                header, start = entity_reader(kind.__header_schema__)(frame, 0)
                self.calls[api] += 1
                self.last[api] = read(kind, frame[start:])
                script = self.script.get(api)
                answer = script.popleft() if script else KioError.none
                if isinstance(answer, bytes):
                    writer.write(answer)
                    return
                if answer is None:  # no answer
                    await reader.read()
                    return
                made = message_type(api, version, "response")
                head = written(made.__header_schema__(correlation_id=header.correlation_id))
                writer.write(framed(head + written(made(**self._fields(api, answer)))))
        except asyncio.IncompleteReadError:
            return
        finally:
            writer.close()

    def _fields(self, api: str, answer: Any) -> dict[str, Any]:
        no_throttle = {"throttle_time": timedelta(0)}
        if api == "api_versions":
            kio = schema(api, 0, "response")
            versions = {key: VERSIONS[key][1] for key in self.served}
            keys = tuple(kio.ApiVersion(api_key=key, min_version=0, max_version=top) for key, top in versions.items())
            return {"error_code": answer, "api_keys": keys}
        if api == "metadata":
            kio = schema(api, 4, "response")
            broker = kio.MetadataResponseBroker(node_id=BrokerId(1), host="127.0.0.1", port=self.port, rack=None)
            return no_throttle | {
                "brokers": (broker,),
                "cluster_id": "here",
                "controller_id": BrokerId(1),
                "topics": (),
            }
        if api == "find_coordinator":
            where = {"node_id": BrokerId(1), "host": "127.0.0.1", "port": self.coordinator_port or self.port}
            return no_throttle | {"error_code": answer, "error_message": None} | where
        if api == "init_producer_id":
            return no_throttle | {"error_code": answer, "producer_id": 4001, "producer_epoch": 4}
        if api == "end_txn":
            return no_throttle | {"error_code": answer}
        kio = schema(api, 0, "response")
        state, epoch = ("Ongoing", 3) if isinstance(answer, KioError) else answer
        described = kio.TransactionState(
            error_code=answer if isinstance(answer, KioError) else KioError.none,
            transactional_id="id",
            transaction_state=state,
            transaction_timeout=timedelta(minutes=1),
            transaction_start_time=datetime.now(UTC),
            producer_id=4001,
            producer_epoch=epoch,
            topics=(),
        )
        return no_throttle | {"transaction_states": (described,)}


Start = Callable[[], Any]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    servers = []

    async def start_one() -> ScriptedBroker:
        broker = ScriptedBroker()
        server = await asyncio.start_server(broker.serve, "127.0.0.1", 0)
        broker.port = server.sockets[0].getsockname()[1]
        servers.append(server)
        return broker

    yield start_one
    for server in servers:
        server.close()


def transactions_of(*brokers: ScriptedBroker, **settings: int) -> KafkaTransactions:
    bootstrap = ",".join(f"127.0.0.1:{each.port}" for each in brokers)
    fast: dict[str, Any] = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 2, "api_timeout_ms": 5000} | settings
    return KafkaTransactions(ClientConfig(bootstrap=bootstrap, **fast))


async def test_requests_go_to_the_coordinator_which_is_looked_up_once(start: Start) -> None:
    any_broker, coordinator = await start(), await start()
    any_broker.coordinator_port = coordinator.port
    async with transactions_of(any_broker) as transactions:
        assert transactions.cluster_id == "here"
        assert await transactions.prepared("id") == PREPARED
        await transactions.ensure_open([PREPARED])
        await asyncio.gather(transactions.commit(PREPARED), transactions.abort("id"))
    assert any_broker.calls == {"api_versions": 1, "metadata": 1, "find_coordinator": 1}
    assert coordinator.calls == {"api_versions": 1, "describe_transactions": 2, "end_txn": 1, "init_producer_id": 1}
    assert coordinator.connections == 1
    commit = coordinator.last["end_txn"]
    assert (commit.transactional_id, commit.producer_id, commit.producer_epoch, commit.committed) == (*PREPARED, True)


async def test_concurrent_requests_share_a_connection(start: Start) -> None:
    any_broker, coordinator = await start(), await start()
    any_broker.coordinator_port = coordinator.port
    async with transactions_of(any_broker) as transactions:
        await asyncio.gather(*(transactions.commit(PREPARED) for _ in range(5)))
    assert coordinator.calls["end_txn"] == 5
    assert (any_broker.connections, coordinator.connections) == (1, 1)


@pytest.mark.parametrize(
    "answer",
    [
        KioError.not_coordinator,
        KioError.coordinator_load_in_progress,
        KioError.coordinator_not_available,
        KioError.concurrent_transactions,
        DISCONNECT,
        CUT,
    ],
)
@pytest.mark.parametrize("api", ["describe_transactions", "end_txn", "init_producer_id", "find_coordinator"])
async def test_a_coordinator_that_moves_loads_or_disconnects_is_asked_again(
    start: Start, api: str, answer: KioError | bytes
) -> None:
    broker = await start()
    broker.script[api] = deque([answer, answer])
    async with transactions_of(broker) as transactions:
        await transactions.ensure_open([PREPARED])
        await transactions.commit(PREPARED)
        await transactions.abort("id")
    assert broker.calls[api] >= 3
    assert broker.calls["find_coordinator"] == 3  # at first, and after each failure


@pytest.mark.parametrize(
    "code",
    [
        KioError.producer_fenced,
        KioError.invalid_producer_epoch,
        KioError.invalid_txn_state,
        KioError.invalid_producer_id_mapping,
    ],
)
async def test_a_commit_of_an_ended_transaction_is_lost(start: Start, code: KioError) -> None:
    broker = await start()
    broker.script["end_txn"] = deque([code])
    async with transactions_of(broker) as transactions:
        with pytest.raises(PreparedTransactionLostError) as error:
            await transactions.commit(PREPARED)
    assert error.value.code == int(code.value)
    assert broker.calls["end_txn"] == 1


@pytest.mark.parametrize("state", [("CompleteAbort", 3), ("PrepareAbort", 4), ("Ongoing", 4), ("Empty", 3), ("", 0)])
async def test_only_the_same_open_transaction_may_be_decided(start: Start, state: tuple[str, int]) -> None:
    broker = await start()
    broker.script["describe_transactions"] = deque([state])
    async with transactions_of(broker) as transactions:
        with pytest.raises(PreparedTransactionLostError):
            await transactions.ensure_open([PREPARED])


async def test_an_unknown_id_is_lost_and_other_errors_are_named(start: Start) -> None:
    broker = await start()
    script = deque([KioError.transactional_id_not_found, KioError.transactional_id_authorization_failed])
    broker.script["describe_transactions"] = script
    async with transactions_of(broker) as transactions:
        with pytest.raises(PreparedTransactionLostError) as lost:
            await transactions.ensure_open([PREPARED])
        with pytest.raises(RefusedError, match="transaction id cannot be described"):
            await transactions.prepared("id")
    assert lost.value.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


async def test_a_late_answer_is_not_taken_for_the_next_one(start: Start) -> None:
    broker = await start()
    broker.script["end_txn"] = deque([None])
    async with transactions_of(broker, request_timeout_ms=200) as transactions:
        await transactions.commit(PREPARED)
    assert broker.connections == 2


async def test_retries_end(start: Start) -> None:
    broker = await start()
    broker.script["end_txn"] = deque([None] * 3)
    async with transactions_of(broker, request_timeout_ms=50, api_timeout_ms=40) as transactions:
        with pytest.raises(BrokerTimeoutError, match="commit of transaction id: gave up after 1 attempts"):
            await transactions.commit(PREPARED)


async def test_a_broker_without_a_needed_request_is_refused(start: Start) -> None:
    broker = await start()
    del broker.served[65]
    with pytest.raises(ProtocolViolationError, match=r"does not serve version 0 of describe_transactions.*since 3\.0"):
        async with transactions_of(broker):
            pass
    assert broker.calls == {"api_versions": 1}


async def test_a_server_of_another_protocol_is_refused(start: Start) -> None:
    broker = await start()
    broker.script["api_versions"] = deque([b"HTTP/1.1 400 Bad Request\r\n"])
    with pytest.raises(ProtocolViolationError, match="is it a Kafka broker"):
        async with transactions_of(broker):
            pass


async def test_another_bootstrap_server_is_tried(start: Start) -> None:
    down, broker = ScriptedBroker(), await start()
    down.port = 1
    async with transactions_of(down, broker) as transactions:
        assert transactions.cluster_id == "here"
    with pytest.raises(BrokerConnectionError, match=r"127\.0\.0\.1:1"):
        async with transactions_of(down, api_timeout_ms=10):
            pass
