"""`format("barnabas")`: what Spark instantiates, and nothing else.

Import-light: Spark's look-up imports this in every session. Readers and writers load when they are asked for, each in a
Python process of its own, and are pickled several times on their way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class BarnabasDataSource(DataSource):
    """Topics of a broker, or segment files without one, as rows; see docs/pipeline.md for its options."""

    @classmethod
    def name(cls) -> str:
        """What goes into `format(...)`."""
        return "barnabas"

    def schema(self) -> StructType:
        """The columns of a reader that was not told its own. Raises OptionError."""
        from barnabas.pipeline.errors import in_one_sentence
        from barnabas.pipeline.options import Options
        from barnabas.pipeline.reading.schema import source_schema

        with in_one_sentence():
            return source_schema(include_headers=Options(self.options).boolean("includeHeaders", False))

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch read. Raises OptionError, SchemaError."""
        from barnabas.pipeline.errors import in_one_sentence
        from barnabas.pipeline.source.batch import make_batch_reader

        with in_one_sentence():
            return make_batch_reader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """A streaming read. Raises OptionError, SchemaError."""
        from barnabas.pipeline.errors import in_one_sentence
        from barnabas.pipeline.source.stream import make_stream_reader

        with in_one_sentence():
            return make_stream_reader(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A batch write. Raises OptionError, SchemaError."""
        from barnabas.pipeline.errors import in_one_sentence
        from barnabas.pipeline.sink.writers import make_batch_writer

        with in_one_sentence():
            return make_batch_writer(self.options, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        """A streaming write. Raises OptionError, SchemaError."""
        from barnabas.pipeline.errors import in_one_sentence
        from barnabas.pipeline.sink.writers import make_stream_writer

        with in_one_sentence():
            return make_stream_writer(self.options, schema, overwrite=overwrite)
