"""Reads of a broker's topics by the pipeline's source, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from barnabas.pipeline.reading.schema import source_schema
from barnabas.pipeline.source.batch import BarnabasReader, FilteringReader, make_batch_reader
from tests.support.daemon import Daemon


def batch_reader(daemon: Daemon, topic: str, schema: Any = None, **options: str) -> BarnabasReader | FilteringReader:
    """Return a reader, as Spark creates it on the driver."""
    given = {"kafka.bootstrap.servers": daemon.bootstrap, "subscribe": topic, **options}
    include_headers = options.get("includeHeaders") == "true"
    reader = make_batch_reader(given, schema or source_schema(include_headers=include_headers))
    assert isinstance(reader, BarnabasReader)
    return reader


def iter_rows(reader: BarnabasReader) -> Iterator[dict[str, Any]]:
    """Yield the rows, part by part."""
    for part in reader.partitions():
        for batch in reader.read(part):
            yield from batch.to_pylist()


def topic_rows(daemon: Daemon, topic: str, schema: Any = None, **options: str) -> list[dict[str, Any]]:
    """Return all rows of a batch read."""
    return list(iter_rows(batch_reader(daemon, topic, schema, **options)))
