"""The streaming reader and topics deleted while its query runs; called as Spark's driver calls it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from barnabas.pipeline.errors import DataLossError
from barnabas.pipeline.reading.schema import source_schema
from barnabas.pipeline.source.stream import BarnabasStreamReader, make_stream_reader
from tests.support.daemon import Daemon
from tests.support.spark.topics import delete_topic, produce, produce_new


class Query:
    """A reader and the start offsets of its next micro-batch."""

    def __init__(self, reader: BarnabasStreamReader) -> None:
        self._reader = reader
        self._begun = reader.initialOffset()

    def micro_batch(self) -> list[tuple[str, int]]:
        """Run a micro-batch; return the (topic, offset) of its records, in order."""
        end = self._reader.latestOffset(self._begun, ReadAllAvailable())
        found: list[tuple[str, int]] = []
        for part in self._reader.partitions(self._begun, end):
            for batch in self._reader.read(part):
                found += [(row["topic"], row["offset"]) for row in batch.to_pylist()]
        self._begun = end
        return sorted(found)


@pytest.fixture
def query(daemon: Daemon, request: pytest.FixtureRequest) -> Iterator[Query]:
    """Create a query with the topics and failOnDataLoss of the test's parameter; run its first micro-batch."""
    topics, fails = request.param
    for topic in topics.split(","):
        produce_new(daemon, topic, [(0, None, b"old")] * 2)
    options: dict[str, Any] = {"subscribe": topics, "failOnDataLoss": fails, "startingOffsets": "earliest"}
    reader = make_stream_reader(
        {"kafka.bootstrap.servers": daemon.bootstrap, **options}, source_schema(include_headers=False)
    )
    assert isinstance(reader, BarnabasStreamReader)
    running = Query(reader)
    assert running.micro_batch() == [(topic, offset) for topic in topics.split(",") for offset in range(2)]
    yield running
    reader.stop()


@pytest.mark.parametrize("query", [("only", "true")], indirect=True)
def test_the_only_topic_is_told_as_lost_and_not_as_a_foreign_checkpoint(daemon: Daemon, query: Query) -> None:
    delete_topic(daemon, "only")
    with pytest.raises(DataLossError, match="only-0: in the checkpoint, but no longer there"):
        query.micro_batch()


@pytest.mark.parametrize("query", [("gone,kept", "false")], indirect=True)
def test_without_fail_on_data_loss_the_others_are_read_on_and_a_new_one_of_the_name_from_its_beginning(
    daemon: Daemon, query: Query
) -> None:
    delete_topic(daemon, "gone")
    assert query.micro_batch() == []
    produce(daemon, "kept", [(0, None, b"more")])
    assert query.micro_batch() == [("kept", 2)]  # the other topic is no longer remembered
    produce_new(daemon, "gone", [(0, None, b"new")] * 3)
    assert query.micro_batch() == [("gone", offset) for offset in range(3)]
