"""Streams of `format("barnabas")`: limits, AvailableNow, checkpoints, and records produced while they run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader

from tests.support.daemon import Daemon
from tests.support.spark.topics import delete_topic, produce, produce_new, stream_topic

WAIT_S = 90


def run_once(stream: DataStreamReader, checkpoint: Path) -> list[list[tuple[int, int]]]:
    """Run a query with trigger AvailableNow; return the (partition, offset) pairs of each micro-batch."""
    batches: list[list[tuple[int, int]]] = []

    def keep(rows: DataFrame, batch_id: int) -> None:
        found = rows.select("partition", "offset").collect()
        batches.append(sorted((row.partition, row.offset) for row in found))

    writer: Any = stream.load().writeStream.foreachBatch(keep)
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(WAIT_S)
    finally:
        query.stop()
    return batches


def test_available_now_reads_in_batches_of_the_limit_and_a_checkpoint_goes_on_where_it_ended(
    spark: SparkSession, daemon: Daemon, tmp_path: Path
) -> None:
    produce_new(daemon, "limited", [(0, None, b"v")] * 6 + [(1, None, b"v")] * 3, partitions=2)
    stream = stream_topic(spark, daemon, "limited", startingOffsets="earliest", maxOffsetsPerTrigger="6")

    first = run_once(stream, tmp_path / "checkpoint")
    produce(daemon, "limited", [(0, None, b"v")])
    second = run_once(stream, tmp_path / "checkpoint")

    assert first == [[(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1)], [(0, 4), (0, 5), (1, 2)]]
    assert second == [[(0, 6)]]


def test_a_topic_that_was_deleted_and_made_again_is_not_taken_for_the_one_of_the_checkpoint(
    spark: SparkSession, daemon: Daemon, tmp_path: Path
) -> None:
    produce_new(daemon, "again", [(0, None, b"old")] * 2)
    stream = stream_topic(spark, daemon, "again", startingOffsets="earliest")
    run_once(stream, tmp_path / "checkpoint")
    delete_topic(daemon, "again")
    produce_new(daemon, "again", [(0, None, b"new")] * 3)  # the checkpoint's offset also exists in the new topic

    with pytest.raises(StreamingQueryException, match="again was deleted and created again"):
        run_once(stream, tmp_path / "checkpoint")

    lenient = stream_topic(spark, daemon, "again", startingOffsets="earliest", failOnDataLoss="false")
    assert run_once(lenient, tmp_path / "checkpoint") == [[(0, 0), (0, 1), (0, 2)]]
