"""The source of a job's records: topics of a broker, or segment files of data directories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.reading.options import BOOTSTRAP
from barnabas.pipeline.reading.schema import COLUMNS, HEADERS, HEADERS_TYPE, UNDECODED

_COLUMNS = {**COLUMNS, HEADERS: HEADERS_TYPE}


@dataclass(frozen=True, slots=True)
class RecordSource:
    """A broker's address or directories, and topics. For directories, no topics means all of them.

    `options` are further options of the source (startingOffsets, mode, kafka.isolation.level). Raises OptionError
    unless exactly one of broker and directories is given, and for a broker without a topic.
    """

    bootstrap: str | None = None
    log_dirs: tuple[Path, ...] = ()
    topics: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.bootstrap is None) == (not self.log_dirs):
            raise OptionError("give one source: a broker (--bootstrap) or data directories (--log-dir)")
        if self.bootstrap is not None and not self.topics:
            raise OptionError("name at least one topic (--topic) to read from a broker")

    def read(
        self, spark: SparkSession, columns: Sequence[str] = tuple(_COLUMNS), *, undecoded: bool = False
    ) -> DataFrame:
        """Read all current records with these columns; other columns are not read at all.

        `undecoded`: timestamps and headers with the types that hold every record.
        """
        types = {**_COLUMNS, **UNDECODED} if undecoded else _COLUMNS
        schema = StructType([StructField(name, types[name]) for name in columns])
        reader = spark.read.format("barnabas").schema(schema).options(**self.options)
        if self.topics:
            reader = reader.option("subscribe", ",".join(self.topics))
        if self.bootstrap is not None:
            return reader.option(BOOTSTRAP, self.bootstrap).load()
        return reader.load([str(log_dir) for log_dir in self.log_dirs])
