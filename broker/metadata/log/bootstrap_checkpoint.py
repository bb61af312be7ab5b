"""bootstrap.checkpoint: the initial feature levels of an empty metadata log. One file, in `metadata.log.dir`.

A snapshot file: header, FeatureLevel records (`metadata.version` among them), footer. Kafka's storage tool writes it,
and its controller requires it while the log has no level. Source: Kafka's BootstrapDirectory and BatchFileWriter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from barnabas.broker.metadata.errors import MetadataError, ensure_known_level
from barnabas.broker.metadata.log.batches import decode_batches, encode_change, encode_control_batch
from barnabas.broker.storage.files.durable_files import write_durably
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.metadata.control import ControlRecord, SnapshotFooter, SnapshotHeader
from barnabas.protocol.metadata.levels import METADATA_VERSION
from barnabas.protocol.metadata.records import FeatureLevelRecord, MetadataRecord

FILE_NAME = "bootstrap.checkpoint"


def write_bootstrap_checkpoint(directory: Path, features: Mapping[str, int], *, timestamp_ms: int) -> None:
    """Write the file durably, with the levels of `features` (`metadata.version` among them). Raises OSError."""
    header = encode_control_batch([SnapshotHeader(0)], base_offset=0, leader_epoch=0, timestamp_ms=timestamp_ms)
    records, next_offset = encode_change(
        feature_records(features),
        level=features[METADATA_VERSION],
        base_offset=1,
        leader_epoch=0,
        timestamp_ms=timestamp_ms,
    )
    footer = encode_control_batch(
        [SnapshotFooter()], base_offset=next_offset, leader_epoch=0, timestamp_ms=timestamp_ms
    )
    write_durably(directory / FILE_NAME, header + records + footer)


def read_bootstrap_records(directory: Path) -> list[MetadataRecord] | None:
    """Return the initial records of the log, None without a file.

    Raises MetadataError for a file without `metadata.version`, or with an unsupported level.
    """
    path = directory / FILE_NAME
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise MetadataError(f"{path} cannot be read: {error}") from error
    try:
        records = [record for record in decode_batches(data) if not isinstance(record, ControlRecord)]
    except DecodeError as error:
        raise MetadataError(f"{path} cannot be read: {error}") from error
    level = level_of(records)
    if level is None:
        raise MetadataError(f"{path} has no {METADATA_VERSION}; Kafka would not start on it either")
    ensure_known_level(level, str(path))
    return records


def feature_records(features: Mapping[str, int]) -> list[MetadataRecord]:
    """Return the records that finalize the levels above 0, `metadata.version` first, as Kafka requires."""
    names = sorted(features, key=lambda name: (name != METADATA_VERSION, name))
    return [FeatureLevelRecord(name, features[name]) for name in names if features[name]]


def level_of(records: Iterable[MetadataRecord]) -> int | None:
    """Return the last `metadata.version` in `records`, or None."""
    level = None
    for record in records:
        if isinstance(record, FeatureLevelRecord) and record.name == METADATA_VERSION:
            level = record.level
    return level
