"""The columns of `format("barnabas")`, which are those of Spark's Kafka source, and a reader's projection of them.

    key            binary       null for a record without a key
    value          binary       null for a tombstone
    topic          string
    partition      int
    offset         long
    timestamp      timestamp    of the record, in milliseconds
    timestampType  int          0 CreateTime, 1 LogAppendTime
    headers        array<struct<key: string, value: binary>>   with includeHeaders; null without headers

A record that these types cannot hold fails the read: a timestamp above 9,223,372,036,854,775 ms (as in Spark's Kafka
source) and a header name that is not UTF-8. In a schema of the user, `timestamp` may be a long of milliseconds, and the
keys of headers binary, which hold every record.

Spark prunes no columns of a Python source, so a schema that the user gives is the projection: any of these columns, in
any order, with these types. Other columns are not read. It may also have `_corrupt_record` (string): see options.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from barnabas.pipeline.errors import SchemaError
from barnabas.protocol.records.kernels.columns_types import Wanted

HEADERS_TYPE: Final = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))

COLUMNS: Final[dict[str, DataType]] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
}
HEADERS: Final = "headers"
CORRUPT_RECORD: Final = "_corrupt_record"

_ALL: Final[dict[str, DataType]] = {**COLUMNS, HEADERS: HEADERS_TYPE, CORRUPT_RECORD: StringType()}
UNDECODED: Final[dict[str, DataType]] = {
    "timestamp": LongType(),
    HEADERS: ArrayType(StructType([StructField("key", BinaryType()), StructField("value", BinaryType())])),
}
"""Other types of these columns, which hold every record."""
_WANTED: Final = {
    "key": Wanted.KEY,
    "value": Wanted.VALUE,
    "offset": Wanted.OFFSET,
    "timestamp": Wanted.TIMESTAMP,
    "timestampType": Wanted.TIMESTAMP_TYPE,
    HEADERS: Wanted.HEADERS,
}


def source_schema(*, include_headers: bool) -> StructType:
    """Return the schema of a reader without a schema of its own."""
    columns = {**COLUMNS, HEADERS: HEADERS_TYPE} if include_headers else COLUMNS
    return StructType([StructField(name, data_type) for name, data_type in columns.items()])


@dataclass(frozen=True, slots=True)
class Projection:
    """The columns to return, in order. `arrow` equals Spark's own translation of its schema, nullability included."""

    names: tuple[str, ...]
    wanted: Wanted
    arrow: pa.Schema

    @property
    def reports_corruption(self) -> bool:
        """Whether unreadable batches are reported as rows."""
        return CORRUPT_RECORD in self.names


def projection_of(schema: StructType) -> Projection:
    """Return the projection of the schema that Spark passes to a reader. Raises SchemaError for an unknown column."""
    wanted = Wanted(0)
    names = []
    known = {name.lower(): name for name in _ALL}
    for field in schema.fields:
        name = known.get(field.name.lower())
        if name is None:
            raise SchemaError(f"there is no column {field.name!r} in a log: it has {', '.join(_ALL)}")
        is_undecoded = name in UNDECODED and _same_type(field.dataType, UNDECODED[name])
        if not is_undecoded and not _same_type(field.dataType, _ALL[name]):
            raise SchemaError(
                f"column {field.name!r} is {_ALL[name].simpleString()}, not {field.dataType.simpleString()}: "
                "read it as it is and cast it"
            )
        if name in names:
            raise SchemaError(f"column {field.name!r} is in the schema twice")
        names.append(name)
        wanted |= _WANTED.get(name, Wanted(0))
        if name in UNDECODED and not is_undecoded:
            wanted |= Wanted.OFFSET  # for the error of a record that the type cannot hold
    return Projection(tuple(names), wanted, to_arrow_schema(schema, timezone="UTC"))


def _same_type(given: DataType, ours: DataType) -> bool:
    """Return whether the types are equal except for nullability, which a user's schema may change."""
    return given.simpleString() == ours.simpleString()
