"""Micro-batches whose broker dies or is replaced, or whose state cannot be written."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas import ProducerConfig
from barnabas.pipeline.errors import PipelineError, SourceError, in_one_sentence
from barnabas.pipeline.sink.identity import TaskIdentity
from barnabas.pipeline.sink.rows import SinkRecord
from barnabas.pipeline.sink.task import Written, send_what_is_missing
from tests.support.daemon import Daemon, start_daemon
from tests.support.topics import create_topics, read_topic

PARTITIONS = 2
RECORDS = 3000


@pytest.fixture
def own_daemon(tmp_path: Path) -> Iterator[Daemon]:
    with start_daemon(tmp_path / "broker") as running:
        yield running


def rows(daemon: Daemon | None = None, kill_at: int | None = None) -> Iterator[SinkRecord]:
    """Yield rows; at one of them the broker is killed and restarted."""
    for number in range(RECORDS):
        if daemon is not None and number == kill_at:
            daemon.restart(clean=False)
        yield SinkRecord("t", b"%d" % (number % 7), b"%05d" % number, [], number % PARTITIONS, None)


async def write(daemon: Daemon, state: Path, records: Iterator[SinkRecord]) -> Written:
    config = ProducerConfig(bootstrap=daemon.bootstrap, batch_size=1000)
    return await send_what_is_missing(config, records, TaskIdentity(str(state), 0, 0), 0)


async def values(daemon: Daemon) -> list[bytes]:
    return sorted(record.value or b"" for record in await read_topic(daemon.bootstrap, "t", PARTITIONS))


async def test_a_broker_that_is_killed_in_the_middle_of_a_task_gets_every_record_once(
    own_daemon: Daemon, tmp_path: Path
) -> None:
    await create_topics(own_daemon.bootstrap, "t", partitions=PARTITIONS)
    kill_at = random.Random(7).randrange(500, RECORDS - 500)
    try:
        await write(own_daemon, tmp_path / "state", rows(own_daemon, kill_at))
    except Exception as error:  # a batch whose answer was lost may be refused after the restart
        with pytest.raises(SourceError), in_one_sentence():
            raise error
    await write(own_daemon, tmp_path / "state", rows())
    assert await values(own_daemon) == [b"%05d" % number for number in range(RECORDS)]


async def test_a_state_of_another_cluster_is_refused(own_daemon: Daemon, daemon: Daemon, tmp_path: Path) -> None:
    for each in (own_daemon, daemon):
        await create_topics(each.bootstrap, "t", partitions=PARTITIONS)
    assert (await write(own_daemon, tmp_path / "state", rows())).sent == RECORDS
    with pytest.raises(PipelineError, match=r"checkpointLocation .*its barnabas-sink belongs to another cluster: "):
        await write(daemon, tmp_path / "state", rows())
    assert await values(daemon) == []
    assert (await write(own_daemon, tmp_path / "state", rows())).already_there == RECORDS


async def test_a_state_that_cannot_be_written_is_named_and_nothing_is_sent(daemon: Daemon, tmp_path: Path) -> None:
    await create_topics(daemon.bootstrap, "t2", partitions=1)
    (tmp_path / "file").touch()
    with pytest.raises(SourceError, match=rf"{tmp_path}/file"), in_one_sentence():
        await write(daemon, tmp_path / "file", iter([SinkRecord("t2", None, b"v", [], 0, None)]))
    assert await read_topic(daemon.bootstrap, "t2", 1) == []
