"""The batch reader: offset ranges are fixed when the query is planned, then split into a part for each task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from barnabas.pipeline.errors import in_one_sentence
from barnabas.pipeline.reading.batches import ReadRules
from barnabas.pipeline.reading.options import ReadOptions, parse_read_options
from barnabas.pipeline.reading.ranges import checked_range, ending_offsets, starting_offsets
from barnabas.pipeline.reading.schema import projection_of
from barnabas.pipeline.source.filters import Limits, limits_of
from barnabas.pipeline.source.places import open_log, read_part


def make_batch_reader(options: Mapping[str, str], schema: StructType) -> DataSourceReader:
    """Create the reader of a batch query. Raises OptionError, SchemaError."""
    read = parse_read_options(options, is_streaming=False)
    kind = FilteringReader if read.push_filters else BarnabasReader
    return kind(read, rules_of(read, schema))


def rules_of(options: ReadOptions, schema: StructType) -> ReadRules:
    """Return the part of the options that tasks need. Raises SchemaError."""
    return ReadRules(projection_of(schema), options.is_strict, options.check_crcs, options.read_committed)


class BarnabasReader(DataSourceReader):
    """Reads the records that exist when the query is planned."""

    def __init__(self, options: ReadOptions, rules: ReadRules) -> None:
        self._options = options
        self._rules = rules
        self._limits = Limits()

    def partitions(self) -> Sequence[InputPartition]:
        """Return one part for each task. Raises PipelineError."""
        options = self._options
        with in_one_sentence():
            log = open_log(options)
            try:
                partitions = log.partitions()
                starts = starting_offsets(log, options, partitions)
                ends = ending_offsets(log, options, partitions)
                earliest, latest = log.earliest(partitions), log.latest(partitions)
                ranges = [
                    checked_range(options, each, starts[each], ends[each], earliest[each], latest[each])
                    for each in sorted(partitions)
                ]
                narrowed = [self._limits.narrow(each) for each in ranges if self._limits.allows(each.topic_partition)]
                return list(log.parts(narrowed, self._limits.min_timestamp))
            finally:
                log.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one part. Raises PipelineError."""
        with in_one_sentence():
            yield from read_part(self._options, self._rules, partition)


class FilteringReader(BarnabasReader):
    """The reader for the option pushFilters. A class of its own, because Spark checks the class for `pushFilters`."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Take the filters; return those that Spark still has to apply."""
        self._limits, left = limits_of(filters)
        self._rules = replace(self._rules, min_timestamp=self._limits.min_timestamp)
        return left
