"""Requests of a share consumer to a broker that refuses them, or does not answer."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.clients.config import ShareConsumerConfig
from barnabas.clients.errors import BrokerConnectionError, LockLostError
from barnabas.clients.share import leader_requests
from barnabas.clients.share.acknowledgements import Acknowledgement, Outcome, Pending
from barnabas.clients.share.held_records import HeldRecord, HeldRecords
from barnabas.clients.share.leader_requests import LeaderRequests
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share.share_acknowledge import AcknowledgePartition, AcknowledgeTopic
from barnabas.protocol.messages.share.share_fetch import ShareFetchRequest
from barnabas.protocol.topic_partition import TopicPartition

T = b"t" * 16
BOUND_S = 30


class Broker:
    """Answers with the codes in turn; a request after them waits for ever. Is cluster and connection too."""

    address = "broker"
    closed = False

    def __init__(self, *codes: ErrorCode) -> None:
        self.codes = list(codes)
        self.fetches: list[Any] = []
        self.acknowledgements: list[Any] = []
        self.waits = asyncio.Event()
        self.connections = self

    async def connect(self, node_id: int, purpose: str) -> Broker:
        return self

    def version_of(self, api: object) -> int:
        return 2

    async def request(self, request: Any, timeout_ms: int | None = None) -> Any:
        (self.fetches if isinstance(request, ShareFetchRequest) else self.acknowledgements).append(request)
        if not self.codes:
            self.waits.set()
            await asyncio.Event().wait()
        return SimpleNamespace(error=self.codes.pop(0), message=None, lock_timeout_ms=30_000, topics=[])


def requests_to(broker: Any, *, wants: bool) -> LeaderRequests:
    reader: Any = SimpleNamespace(wants_records=wants, failed=None, leaders_changed=lambda: None)
    config = ShareConsumerConfig(group="g", retry_backoff_ms=1, retry_backoff_max_ms=1)
    requests = LeaderRequests(1, "m", broker, config, HeldRecords(), reader)
    requests.partitions = frozenset({(T, 0)})
    return requests


def acceptance(requests: LeaderRequests) -> Pending:
    held = HeldRecord(TopicPartition("t", 0), T, 5, 1, 1e12, requests)
    return Pending(Acknowledgement.ACCEPT, held, Outcome(1))


@pytest.mark.parametrize("code", [ErrorCode.SHARE_SESSION_LIMIT_REACHED, ErrorCode.COORDINATOR_NOT_AVAILABLE])
@pytest.mark.parametrize("served", [0, 1])
async def test_another_session_with_all_partitions_follows_a_refused_fetch(code: ErrorCode, served: int) -> None:
    broker = Broker(*[ErrorCode.NONE] * served, code, *[ErrorCode.NONE] * served)  # the last closes the session
    requests = requests_to(broker, wants=True)
    requests.begin()
    async with asyncio.timeout(BOUND_S):
        await broker.waits.wait()
    await requests.end()
    everything = [AcknowledgeTopic(topic_id=T, partitions=[AcknowledgePartition(partition=0, batches=[])])]
    assert [each.session_epoch for each in broker.fetches] == [*range(served), served, 0]
    assert broker.fetches[0].topics == broker.fetches[-1].topics == everything
    assert [each.session_epoch for each in broker.acknowledgements] == [-1] * served


async def test_a_refused_acknowledgement_loses_its_lock() -> None:
    broker = Broker(ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NONE)
    requests = requests_to(broker, wants=False)
    requests._session.accepted()
    requests._connection = broker  # type: ignore[assignment]
    pending = acceptance(requests)
    requests.acknowledge(pending)
    requests.begin()
    assert pending.outcome is not None
    async with asyncio.timeout(BOUND_S):
        with pytest.raises(LockLostError):
            await pending.outcome.future
    await requests.end()


async def test_a_refused_renewal_does_not_replace_the_acknowledgement_that_followed_it() -> None:
    requests = requests_to(Broker(), wants=False)
    later = acceptance(requests)
    renewal = Pending(Acknowledgement.RENEW, later.held, Outcome(1))
    requests.acknowledge(later)
    refused = {(T, 0): (ErrorCode.COORDINATOR_NOT_AVAILABLE, None)}
    assert requests._settle({(T, 0): {5: renewal}}, refused, lock_until=0)
    assert requests._pending.take()[T, 0] == {5: later}
    assert later.outcome is not None
    assert not later.outcome.future.done()


async def test_callers_hear_of_an_acknowledgement_without_an_answer_when_the_consumer_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leader_requests, "CLOSE_TIMEOUT_MS", 1)
    broker = Broker()
    requests = requests_to(broker, wants=False)
    requests._session.accepted()
    requests._connection = broker  # type: ignore[assignment]
    pending = acceptance(requests)
    requests.acknowledge(pending)
    requests.begin()
    assert pending.outcome is not None
    async with asyncio.timeout(BOUND_S):
        await broker.waits.wait()
        await requests.end()
    assert pending.outcome.future.done()
    with pytest.raises(BrokerConnectionError, match="the consumer is closed"):
        await pending.outcome.future
