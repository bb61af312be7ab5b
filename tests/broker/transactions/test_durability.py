"""The order of syncs at the end of a transaction, where flush.messages requires them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from barnabas.protocol.records.batch import iter_batches
from tests.support.daemon import start_daemon, with_fault
from tests.support.groups.committed import create_topic
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.kafka.wire_producer import WireProducer

FAILING_SYNCS = """
import os
sync = os.fdatasync
def failing(descriptor):
    path = os.readlink(f"/proc/self/fd/{{descriptor}}")
    if os.path.exists({flag!r}) and os.path.basename(os.path.dirname(path)) == {partition!r}:
        raise OSError(5, "the disk is broken")
    sync(descriptor)
os.fdatasync = failing
"""

STATE, DATA = "__transaction_state-0", "t-0"


@pytest.mark.parametrize(
    ("broken", "code", "markers", "states"),
    [
        (STATE, 15, 0, ["Ongoing", "PrepareCommit"]),
        (DATA, 0, 1, ["Ongoing", "PrepareCommit"]),
    ],
)
def test_a_marker_follows_the_synced_decision_and_the_completed_state_the_synced_marker(
    tmp_path: Path, broken: str, code: int, markers: int, states: Sequence[str]
) -> None:
    flag = tmp_path / "broken"
    environ = with_fault(tmp_path, FAILING_SYNCS.format(flag=str(flag), partition=broken))
    settings = (
        "log.flush.interval.messages=1",
        "transaction.state.log.num.partitions=1",
        f"log.dirs={tmp_path / 'one'},{tmp_path / 'two'}",
        f"metadata.log.dir={tmp_path / 'metadata'}",
    )
    with start_daemon(tmp_path, *settings, environ=environ) as daemon, KafkaWire(daemon.host, daemon.port) as wire:
        create_topic(wire, "t")
        producer = WireProducer(wire, "id", wait_s=0)
        while producer.init() == 15:  # until the topic exists
            pass
        assert producer.write("t", 0, b"a") == 0
        flag.touch()
        assert producer.end(is_commit=True) == code
        assert sum(batch.is_control for batch in iter_batches(log_of(tmp_path, DATA))) == markers
        assert len(list(iter_batches(log_of(tmp_path, STATE)))) == 1 + len(states)
        assert "the disk is broken" in daemon.log


def log_of(tmp_path: Path, partition: str) -> bytes:
    """Return the bytes of all segments."""
    return b"".join(log.read_bytes() for log in sorted(tmp_path.glob(f"*/{partition}/*.log")))
