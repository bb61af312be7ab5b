"""Groups whose records cannot be written, and clients that try again at once: the pace, and the lines in the log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.broker.coordinator_log.parts import LogParts
from barnabas.broker.groups.client import JoiningClient
from barnabas.broker.groups.coordinator import GroupCoordinator
from barnabas.broker.live_config import LiveConfig
from barnabas.broker.metadata.image import MetadataImage, TopicImage
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.partitions.flush_waits import FlushWaits
from barnabas.broker.probes import ApiProbe, GroupProbe
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.groups.join_group import GroupProtocol, JoinGroupRequest
from barnabas.protocol.messages.groups.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from barnabas.protocol.messages.groups.share_group_heartbeat import ShareGroupHeartbeatRequest
from barnabas.protocol.messages.groups.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from barnabas.protocol.messages.groups.streams_topology import Subtopology, Topology
from barnabas.protocol.messages.groups.sync_group import MemberAssignment, SyncGroupRequest
from barnabas.protocol.topic_name import OFFSETS_TOPIC
from tests.support.manual_loop import InlineExecutor, ManualLoop
from tests.support.storage.bench import broker_config
from tests.support.transactions.real_partitions import RealPartitions

GROUP = "g"
CLIENT = JoiningClient("client", "/127.0.0.1")
PLACE = (OFFSETS_TOPIC, 0)
SECONDS = 60
LINES_MAX = 30


class Host:
    """A group coordinator on a disk that is full until `has_room`."""

    def __init__(self, directory: Path) -> None:
        self.loop = ManualLoop()
        topic = TopicImage(OFFSETS_TOPIC, bytes(16), {0: cast(Any, None)})
        self.image = MetadataImage(topics={OFFSETS_TOPIC: topic})
        self._partitions = RealPartitions(directory, {PLACE: bytes(16)}, self.loop)
        self._partitions.all[PLACE].is_full = True
        none = cast(Any, None)
        config = LiveConfig(broker_config(group_initial_rebalance_delay_ms="0"), 1, self.image)
        store = cast(Any, SimpleNamespace(image=self.image))
        parts = LogParts(
            self._partitions.registry, store, none, config, FlushWaits(self.loop), self.loop.wall_ms, self.loop
        )
        self.groups = GroupCoordinator(
            parts, blocking_io=InlineExecutor(), probe=GroupProbe(), share_coordinator=lambda: none
        )

    def make_room(self) -> None:
        self._partitions.all[PLACE].is_full = False

    def close(self) -> None:
        self._partitions.close()
        self.loop.close()


class EagerClient:
    """Sends its next request as soon as the last one is answered, and counts the refusals."""

    def __init__(self, host: Host, first: Callable[[EagerClient], Any]) -> None:
        self.host = host
        self.refusals = 0
        self.is_in = False
        self.member_id = ""
        self._first = first

    def begin(self) -> None:
        """Join, in a turn of its own."""
        self.host.loop.call_soon(self._first, self)

    def then(self, answer: Any, go_on: Callable[[Any], None]) -> None:
        """Pass the answer on, or begin again if it is a refusal."""

        def answered(response: Any) -> None:
            if response.error == ErrorCode.COORDINATOR_NOT_AVAILABLE:
                self.refusals += 1
                self.begin()
            else:
                go_on(response)

        answer.then(answered) if isinstance(answer, Deferred) else answered(answer)

    def joined(self, response: Any) -> None:
        assert response.error == ErrorCode.NONE, response
        self.is_in = True


def classic(client: EagerClient) -> None:
    members = client.host.groups.members
    protocol = GroupProtocol(name="range", metadata=b"\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff")
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        sent_rebalance_timeout_ms=60_000,
        member_id=client.member_id,
        protocol_type="consumer",
        protocols=[protocol],
        version=3,
    )

    def joined(response: Any) -> None:
        client.member_id = response.member_id
        sync = SyncGroupRequest(
            group_id=GROUP,
            generation=response.generation,
            member_id=response.member_id,
            assignments=[MemberAssignment(member_id=response.member_id, assignment=b"")],
        )
        client.then(members.sync(sync), client.joined)

    client.then(members.join(request, CLIENT), joined)


def consumer(client: EagerClient) -> None:
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP, member_id="m", member_epoch=0, rebalance_timeout_ms=60_000, topic_names=["t"], topics=()
    )
    client.then(client.host.groups.consumer.heartbeat(request, CLIENT, ApiProbe()), client.joined)


def share(client: EagerClient) -> None:
    request = ShareGroupHeartbeatRequest(group_id=GROUP, member_id="m", member_epoch=0, topic_names=["t"])
    client.then(client.host.groups.share.heartbeat(request, CLIENT, ApiProbe()), client.joined)


def streams(client: EagerClient) -> None:
    request = StreamsGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        topology=Topology(epoch=0, subtopologies=(Subtopology(subtopology_id="0", source_topics=("t",)),)),
        active_task_ids=(),
        standby_task_ids=(),
        warmup_task_ids=(),
        process_id="p",
    )
    answer: Deferred[Any] = Deferred()
    client.host.groups.streams.heartbeat(request, CLIENT, ApiProbe()).then(
        lambda result: answer.resolve(result.response)
    )
    client.then(answer, client.joined)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path)
    yield host
    host.close()


@pytest.mark.parametrize("join", [classic, consumer, share, streams])
def test_a_client_that_never_pauses_is_refused_once_a_second_and_fills_no_log(
    host: Host, join: Callable[[EagerClient], None], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "barnabas")
    client = EagerClient(host, join)
    client.begin()
    host.loop.pass_time(SECONDS * 1000)
    assert SECONDS // 2 < client.refusals <= SECONDS
    assert not client.is_in
    assert len(caplog.records) <= LINES_MAX, caplog.text

    host.make_room()
    host.loop.pass_time(3_000)
    assert client.is_in


def test_a_commit_is_refused_at_once_so_that_heartbeats_behind_it_are_in_time(host: Host) -> None:
    request = OffsetCommitRequest(
        group_id=GROUP,
        topics=[OffsetCommitTopic(name=OFFSETS_TOPIC, partitions=[OffsetCommitPartition(partition=0, offset=1)])],
    )
    answered: list[Any] = []
    answer = host.groups.offsets.commit(request)
    assert isinstance(answer, Deferred)
    answer.then(answered.append)
    host.loop.settle()
    assert [answered[0].topics[0].partitions[0].error] == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
