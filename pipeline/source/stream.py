"""The streaming reader: how far each micro-batch goes, by the rules of Spark's Kafka source.

A checkpoint's offsets are `{"topic": {"0": 123}}`, the next to read of each partition, with the topic ids beside them
(reading/offsets.py). A new partition starts at its earliest offset. A partition that is gone, whose log ends before the
checkpoint, or whose topic was deleted and created again is data loss. The driver's reader lives as long as the query
and keeps its connection; on executors another instance reads, which has only its options and its part.

Limits: maxOffsetsPerTrigger is shared by the partitions in proportion to their backlog; below minOffsetsPerTrigger a
micro-batch waits for at most maxTriggerDelay. Trigger AvailableNow reads the records that existed when the query
started, in as many batches as the limits require, and never waits. Source: Spark's KafkaMicroBatchStream.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from barnabas.pipeline.errors import OptionError, in_one_sentence
from barnabas.pipeline.reading.batches import ReadRules
from barnabas.pipeline.reading.offsets import Offsets, TopicIds, from_spark, ids_from_spark, names_of, to_spark
from barnabas.pipeline.reading.options import ReadOptions, parse_read_options
from barnabas.pipeline.reading.ranges import ReadableLog, checked_range, data_loss, rate_limited, starting_offsets
from barnabas.pipeline.source.batch import rules_of
from barnabas.pipeline.source.places import open_log, read_part
from barnabas.protocol.topic_partition import TopicPartition


def make_stream_reader(options: Mapping[str, str], schema: StructType) -> DataSourceStreamReader:
    """Create the reader of a streaming query. Raises OptionError, SchemaError."""
    read = parse_read_options(options, is_streaming=True)
    return BarnabasStreamReader(read, rules_of(read, schema))


class BarnabasStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads new records in micro-batches. Pickled to the executors, where only `read` is called."""

    def __init__(self, options: ReadOptions, rules: ReadRules, clock: Callable[[], float] = time.monotonic) -> None:
        self._options = options
        self._rules = rules
        self._clock = clock
        self._log: ReadableLog | None = None
        self._target: tuple[Offsets, TopicIds] | None = None  # of AvailableNow
        self._last_trigger = clock()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_log": None}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return where a query without a checkpoint begins: `startingOffsets` or its timestamp forms."""
        with in_one_sentence():
            log = self._opened()
            return to_spark(starting_offsets(log, self._options, log.partitions()), log.topic_ids())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the limit that the options set; Spark overrides it for triggers that read everything."""
        options = self._options
        if options.max_offsets_per_trigger is not None:
            return ReadMaxRows(options.max_offsets_per_trigger)
        if options.min_offsets_per_trigger is not None:
            return ReadMinRows(options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return where the next micro-batch ends; `start` means no micro-batch."""
        with in_one_sentence():
            latest, ids = self._latest()
            begun = self._of_the_same_topics(start, ids)
            begins = {**self._new_partitions(begun, latest), **begun}
            if not isinstance(limit, ReadAllAvailable):
                if self._waits_for_more(begins, latest):
                    return start
                if isinstance(limit, ReadMaxRows):
                    known = {partition: end for partition, end in latest.items() if partition in begins}
                    latest = {**latest, **rate_limited(limit.max_rows, begins, known)}
            return to_spark(self._not_backwards(begun, latest), {**ids_from_spark(start), **ids})

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """Return the latest offsets for the query's progress report."""
        with in_one_sentence():
            log = self._opened()
            return to_spark(log.latest(log.partitions())) or None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Fix the end of the query at the offsets of now."""
        with in_one_sentence():
            log = self._opened()
            self._target = log.latest(log.partitions()), log.topic_ids()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return a part for each task of the micro-batch. Raises DataLossError."""
        with in_one_sentence():
            if start == end:
                return []
            log = self._opened()
            there = log.partitions()
            begun = self._of_the_same_topics(start, ids_from_spark(end))
            ends = self._of_the_same_topics(end, log.topic_ids())
            self._check_gone(begun, ends, there)
            wanted = sorted(ends.keys() & there)
            earliest, latest = log.earliest(wanted), log.latest(wanted)
            ranges = [
                checked_range(
                    self._options, each, begun.get(each, earliest[each]), ends[each], earliest[each], latest[each]
                )
                for each in wanted
            ]
            self._last_trigger = self._clock()
            return list(log.parts(ranges, None))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one part. Raises PipelineError."""
        with in_one_sentence():
            yield from read_part(self._options, self._rules, partition)

    def stop(self) -> None:
        """Close the connection."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def _opened(self) -> ReadableLog:
        if self._log is None:
            self._log = open_log(self._options)
        return self._log

    def _latest(self) -> tuple[Offsets, TopicIds]:
        if self._target is not None:
            return self._target
        log = self._opened()
        return log.latest(log.partitions()), log.topic_ids()

    def _of_the_same_topics(self, written: Mapping[str, Any], ids: Mapping[str, str]) -> Offsets:
        """Return the offsets without those of topics that now have another id: their log is gone.

        Raises DataLossError.
        """
        offsets, known = from_spark(written), ids_from_spark(written)
        others = sorted(topic for topic, topic_id in known.items() if ids.get(topic, topic_id) != topic_id)
        for topic in others:
            data_loss(
                self._options,
                f"{topic} was deleted and created again: the checkpoint has topic id {known[topic]}, now it is "
                f"{ids[topic]}; the checkpoint's offsets do not apply to the new topic",
            )
        return {partition: offset for partition, offset in offsets.items() if partition.topic not in others}

    def _new_partitions(self, begun: Offsets, latest: Offsets) -> Offsets:
        new = latest.keys() - begun.keys()
        return self._opened().earliest(new) if new else {}

    def _waits_for_more(self, begins: Offsets, latest: Offsets) -> bool:
        """Return whether the backlog is below minOffsetsPerTrigger and maxTriggerDelay has not passed."""
        least = self._options.min_offsets_per_trigger
        if least is None or self._target is not None:
            return False
        there = sum(max(0, end - begins[partition]) for partition, end in latest.items())
        waited_ms = (self._clock() - self._last_trigger) * 1000
        return there < least and waited_ms < self._options.max_trigger_delay_ms

    def _not_backwards(self, begun: Offsets, latest: Offsets) -> Offsets:
        """Return end offsets not below the start. Raises DataLossError for a log that ends before its checkpoint."""
        self._check_gone(begun, begun, latest.keys())
        for partition, offset in begun.items():
            if partition in latest and latest[partition] < offset:
                data_loss(
                    self._options,
                    f"{partition}: the checkpoint is at offset {offset}, the log ends at {latest[partition]}",
                )
        return {**begun, **{each: max(end, begun.get(each, 0)) for each, end in latest.items()}}

    def _check_gone(self, begun: Offsets, ends: Offsets, there: frozenset[TopicPartition] | Any) -> None:
        gone = (begun.keys() | ends.keys()) - there
        if not gone:
            return
        foreign = {each.topic for each in gone} - {each.topic for each in there}
        if there and foreign == {each.topic for each in begun.keys() | ends.keys()}:
            raise OptionError(
                f"option checkpointLocation: it belongs to a query over {names_of(gone)}, none of which is read here "
                f"({names_of(there)} is): give this query its own checkpoint"
            )
        data_loss(self._options, f"{names_of(gone)}: in the checkpoint, but no longer there or no longer subscribed")
