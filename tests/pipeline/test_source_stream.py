"""Streams of `format("barnabas")`: limits, AvailableNow, checkpoints, and what comes while they run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader

from tests.support.daemon import Daemon
from tests.support.spark_topics import produce, produce_new, stream_topic

WAIT_S = 90


def run_once(stream: DataStreamReader, checkpoint: Path) -> list[list[tuple[int, int]]]:
    """The (partition, offset) of each micro-batch of a query with trigger AvailableNow."""
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
