"""What pages need of all partitions of a snapshot, computed once, and observations that go on."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from barnabas.clients.errors import ClientError
from barnabas.console.cluster.observer import Observer
from barnabas.console.cluster.snapshot import GroupFacts, PartitionFacts, Snapshot, TopicFacts
from barnabas.console.pages.groups import _lags
from barnabas.protocol.messages.groups.groups import ListedGroup
from barnabas.protocol.topic_partition import TopicPartition


def topic(name: str, *ends: int | None) -> TopicFacts:
    partitions = [PartitionFacts(number, 1, 0, (1,), (1,), 0, end, 0, "/d") for number, end in enumerate(ends)]
    return TopicFacts(name, "", False, partitions)


def group(name: str, committed: dict[TopicPartition, int]) -> GroupFacts:
    return GroupFacts(ListedGroup(group_id=name, protocol_type="consumer", state="Empty", type="classic"), committed)


def test_lags_are_those_behind_the_ends_that_are_known() -> None:
    first, second, gone = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("c", 0)
    slow = group("slow", {second: 4, first: 1, gone: 3})
    quick = group("quick", {first: 9})
    topics = {each.name: each for each in (topic("a", 10, 5), topic("b", None))}
    snapshot = Snapshot(0, "", 1, (), topics, (), {"slow": slow, "quick": quick})
    assert snapshot.ends == {first: 10, second: 5, TopicPartition("b", 0): None}
    assert snapshot.ends is snapshot.ends
    assert snapshot.largest_lags == {"a": 10}
    assert [(each.topic, each.partition, each.lag) for each in _lags(slow, snapshot)] == [
        ("a", 0, 9),
        ("a", 1, 1),
        ("c", 0, None),
    ]
    assert [each.partition for each in _lags(slow, snapshot, "a")] == [0, 1]


def test_the_cluster_is_observed_again_after_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that waits for the first observation gets an error, not nothing for ever."""
    failures = [RuntimeError("a bug"), ClientError("no broker")]
    seen: list[str] = []

    async def list_all(*_: object, **__: object) -> None:
        if failures:
            raise failures.pop(0)
        seen.append("again")
        raise ClientError("no broker")

    async def scenario() -> None:
        observer = Observer(cast("Any", None), 0.0, is_barnabas=False)
        with pytest.raises(ClientError):
            await asyncio.wait_for(observer.snapshot(), 20)
        assert observer.failure == "an error inside the console; its log says more"
        async with asyncio.timeout(20):
            while not seen:
                await asyncio.sleep(0)
        await observer.close()

    monkeypatch.setattr("barnabas.console.cluster.observer.list_all", list_all)
    asyncio.run(scenario())
