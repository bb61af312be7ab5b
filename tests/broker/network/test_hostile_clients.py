"""Clients that ask for too much, forge lines of the log, or leave within a request disturb nobody."""

from __future__ import annotations

import random
import socket
import struct
from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.cluster.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.cluster.configs import (
    BROKER_RESOURCE,
    OP_DELETE,
    OP_SET,
    TOPIC_RESOURCE,
    AlterConfigOp,
    AlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.data.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.topics.metadata import MetadataRequest
from barnabas.protocol.messages.topics.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    NewPartitions,
    NewTopic,
    TopicReference,
    config_rows,
)
from tests.broker.conftest import Batch
from tests.support.daemon import Daemon
from tests.support.kafka import kafka_wire
from tests.support.wire import WireClient, fetch_request, produce_request


def requests(rng: random.Random, batch: Batch) -> list[Any]:
    """Return one valid request of each API."""
    topic = f"x{rng.randrange(20)}"
    offset = rng.choice([-1, -2, -3, 5, 1_700_000_000_000])
    altered = AlterConfigOp(name="retention.ms", operation=rng.choice([OP_SET, OP_DELETE]), value="99999999999")
    described = DescribeConfigsResource(type=rng.choice([TOPIC_RESOURCE, BROKER_RESOURCE]), name="fuzz")
    return [
        produce_request("fuzz", batch(bytes(rng.randrange(200))), rng.randrange(2), rng.choice([1, -1])),
        fetch_request("fuzz", rng.randrange(3), rng.randrange(2), max_wait_ms=rng.choice([0, 2])),
        ListOffsetsRequest(
            topics=[ListOffsetsTopic(name="fuzz", partitions=[ListOffsetsPartition(partition=0, timestamp=offset)])]
        ),
        MetadataRequest.of_names(rng.choice([None, [], ["fuzz", "none"]])),
        ApiVersionsRequest(client="tester", client_version="1"),
        CreateTopicsRequest(topics=[NewTopic(name=topic, partitions=rng.choice([-1, 1, 2]))], validate_only=True),
        CreateTopicsRequest(topics=[NewTopic(name=topic, configs=config_rows({"retention.ms": "1000"}))]),
        DeleteTopicsRequest(references=[TopicReference(name=topic)]),
        CreatePartitionsRequest(topics=[NewPartitions(name=topic, count=rng.randrange(4))]),
        DescribeConfigsRequest(resources=[described]),
        IncrementalAlterConfigsRequest(
            resources=[AlterConfigsResource(type=TOPIC_RESOURCE, name="fuzz", operations=[altered])]
        ),
    ]


def test_a_small_request_for_a_very_large_answer_is_refused(wire: WireClient) -> None:
    wire.create_topic("described")
    resource = DescribeConfigsResource(type=TOPIC_RESOURCE, name="described")
    answer = wire.call(DescribeConfigsRequest(resources=[resource] * 2))
    assert [result.error for result in answer.results] == [ErrorCode.INVALID_REQUEST] * 2


def test_a_clients_line_breaks_do_not_look_like_lines_of_the_log(
    daemon: Daemon, wire: WireClient, batch: Batch
) -> None:
    forged = "\n2030-01-01 00:00:00,000 ERROR forged"
    refused = kafka_wire.produce_request(9, "topic" + forged, batch(), acks=0)
    wire.socket.sendall(kafka_wire.request_frame(refused, 1, "me" + forged))
    assert wire.is_closed_by_broker()
    assert "forged" in daemon.log
    assert not any(line.startswith("2030") for line in daemon.log.splitlines())


def test_a_client_that_closes_within_every_kind_of_request_disturbs_nobody(
    daemon: Daemon, wire: WireClient, batch: Batch
) -> None:
    rng = random.Random(3)
    for _ in range(20):
        for request in requests(rng, batch):
            with WireClient(daemon.host, daemon.port) as client:
                frame = client.frame(request)
                client.socket.sendall(frame * 3 + frame[: rng.randrange(len(frame))])
                if rng.random() < 0.5:  # a reset instead of an orderly close
                    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.call(MetadataRequest.of_names(None))
    assert "a bug" not in daemon.log
    assert "Traceback" not in daemon.log
