"""`format("barnabas")`: the class that Spark instantiates.

Light to import, because Spark's look-up imports it in every session. Readers and writers are imported when Spark
requests them, each in a Python process of its own, and are pickled several times.
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
        """The name for `format(...)`."""
        return "barnabas"

    def schema(self) -> StructType:
        """Return the columns of a reader without a schema of its own. Raises OptionError."""
        from barnabas.pipeline.errors import in_one_sentence
        from barnabas.pipeline.options import Options
        from barnabas.pipeline.reading.schema import source_schema

        with in_one_sentence():
            return source_schema(include_headers=Options(self.options).boolean("includeHeaders", False))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Create a batch reader. Raises OptionError, SchemaError."""
        from barnabas.pipeline.errors import in_one_sentence
        from barnabas.pipeline.source.batch import make_batch_reader

        with in_one_sentence():
            return make_batch_reader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Create a streaming reader. Raises OptionError, SchemaError."""
        from barnabas.pipeline.errors import in_one_sentence
        from barnabas.pipeline.source.stream import make_stream_reader

        with in_one_sentence():
            return make_stream_reader(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Create a batch writer. Raises OptionError, SchemaError."""
        from barnabas.pipeline.errors import in_one_sentence
        from barnabas.pipeline.sink.writers import make_batch_writer

        with in_one_sentence():
            return make_batch_writer(self.options, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        """Create a streaming writer. Raises OptionError, SchemaError."""
        from barnabas.pipeline.errors import in_one_sentence
        from barnabas.pipeline.sink.writers import make_stream_writer

        with in_one_sentence():
            return make_stream_writer(self.options, schema, overwrite=overwrite)
