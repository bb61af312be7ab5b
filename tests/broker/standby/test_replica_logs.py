"""Logs that a standby has no room for: how often it tries to create them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.broker.image_applier import RETRY_SECONDS
from barnabas.broker.metadata.image import MetadataImage, TopicImage
from barnabas.broker.probes import BrokerProbes
from barnabas.broker.standby import replica_logs
from barnabas.broker.standby.replica_logs import ReplicaLogs
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.manual_loop import ManualLoop

FULL, ROOMY = (b"full",), (b"roomy",)
STATES = {number: SimpleNamespace(directories=ROOMY if number == 9 else FULL) for number in range(100)}


@pytest.fixture
def loop() -> Iterator[ManualLoop]:
    with closing(ManualLoop()) as loop:
        yield loop


def test_a_full_disk_is_tried_with_one_log_and_again_after_a_pause(
    loop: ManualLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def create_log(topic: TopicImage, key: TopicPartition, *_: Any, is_new: bool) -> None:
        tried.append(key.partition)
        if cast(Any, topic.partitions[key.partition]).directories == FULL:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "no space left on device")

    monkeypatch.setattr(replica_logs, "create_log", create_log)
    log_manager = SimpleNamespace(delete=list, get=lambda key: None, failures=SimpleNamespace(offline=()))
    logs = ReplicaLogs(cast(Any, log_manager), cast(Any, None), {}, BrokerProbes(), loop, compares_batches=False)
    image = MetadataImage(topics={"t": TopicImage("t", bytes(16), cast(Any, STATES))})
    logs.change_logs(MetadataImage(), image)
    assert tried == [0, 9]
    assert len(logs.missing) == 99
    logs.change_logs(image, image)
    before = logs.retries
    assert tried == [0, 9]
    loop.pass_time(round(RETRY_SECONDS * 1000))
    assert (before, logs.retries) == (False, True)
    logs.change_logs(image, image)
    assert tried == [0, 9, 0, 9]
