"""The work of `barnabas log dump`: prints files as lines, each kind by its reader of broker.storage.inspection.

Unreadable data is reported on standard error and counted in `failures`; the other files are dumped all the same.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from barnabas.broker.storage.files.checkpoint_file import OffsetCheckpointFile, read_checkpoint_lines
from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.files.partition_metadata_file import read_partition_metadata
from barnabas.broker.storage.inspection.file_types import FileType, KnownFile, identify, known_files
from barnabas.broker.storage.inspection.index_entries import (
    IndexContent,
    read_offset_index,
    read_time_index,
    read_transaction_index,
)
from barnabas.broker.storage.inspection.log_walk import LogWalk, StoredBatch, StoredMessage
from barnabas.broker.storage.inspection.positions import position_of_offset
from barnabas.broker.storage.producers.snapshot import decode_snapshot
from barnabas.commands.failures import CommandFailure
from barnabas.commands.log.coordinator_json import CoordinatorLog, UnknownType, coordinator_json
from barnabas.commands.log.dump_fields import (
    Fields,
    aborted_fields,
    batch_fields,
    message_fields,
    offset_entry_fields,
    producer_fields,
    record_json_data,
    record_text_data,
    stored_records,
    text_line,
    time_entry_fields,
)
from barnabas.commands.log.metadata_json import control_fields, metadata_json
from barnabas.commands.output import print_note, standard_output
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.records.record import Record
from barnabas.protocol.uuids import uuid_text

_FLUSH_CHARACTERS = 64 * 1024


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """Options of the command. The limits count over all files; None: no limit."""

    as_json: bool = False
    records: bool = False
    data: bool = False
    cluster_metadata: bool = False
    coordinator: CoordinatorLog | None = None
    from_offset: int | None = None
    max_batches: int | None = None
    max_records: int | None = None


class _EnoughError(Exception):
    """A limit of the options is reached."""


class Dump:
    """One run of the command."""

    def __init__(self, options: DumpOptions) -> None:
        self.failures = 0
        self._options = options
        self._batches = 0
        self._records = 0
        self._lines: list[str] = []
        self._pending_characters = 0
        self._file = Path()
        self._output: BinaryIO = standard_output()

    def run(self, paths: Sequence[Path]) -> None:
        """Dump all files. Raises CommandFailure for a path that is not a log's file or directory, OSError."""
        files = [known for path in paths for known in self._files_of(path)]
        try:
            for known in files:
                self._dump(known)
        except _EnoughError:
            pass
        finally:
            if not isinstance(sys.exc_info()[1], BrokenPipeError):
                self._flush()

    def _files_of(self, path: Path) -> list[KnownFile]:
        if path.is_dir():
            files = [known for known in known_files(path) if not known.stage]
            if not files:
                raise CommandFailure(f"{path}: no log files in this directory")
            return self._from_offset_on(files)
        known = identify(path)
        if not path.exists():
            raise CommandFailure(f"{path}: no such file")
        if known is None:
            raise CommandFailure(f"{path}: not the name of a log file, and the name determines how a file is read")
        return [known]

    def _from_offset_on(self, files: list[KnownFile]) -> list[KnownFile]:
        """Leave out the segments that end before the first wanted offset."""
        wanted = self._options.from_offset
        if wanted is None:
            return files
        first = max((f.offset for f in files if f.type is FileType.LOG and f.offset <= wanted), default=0)
        return [known for known in files if known.offset < 0 or known.offset >= first]

    def _dump(self, known: KnownFile) -> None:
        self._file = known.path
        if not self._options.as_json:
            self._print(f"Dumping {known.path}")
        try:
            match known.type:
                case FileType.LOG | FileType.METADATA_SNAPSHOT:
                    self._dump_log(known)
                case FileType.OFFSET_INDEX:
                    self._dump_index(
                        read_offset_index(known.path, known.offset), "offsetIndexEntry", offset_entry_fields
                    )
                case FileType.TIME_INDEX:
                    self._dump_index(read_time_index(known.path, known.offset), "timeIndexEntry", time_entry_fields)
                case FileType.TRANSACTION_INDEX:
                    self._dump_index(read_transaction_index(known.path), "abortedTransaction", aborted_fields)
                case FileType.PRODUCER_SNAPSHOT:
                    for row in decode_snapshot(known.path.read_bytes(), known.path):
                        self._emit("producer", producer_fields(row))
                case _:
                    for fields in _small_file_fields(known):
                        self._emit(known.type.value, fields)
        except CorruptFileError as error:
            self._fail(f"{known.path}: {error.message}")

    # -- logs

    def _dump_log(self, known: KnownFile) -> None:
        if not self._options.as_json:
            self._print(_log_title(known))
        start = 0
        if self._options.from_offset is not None and known.type is FileType.LOG:
            start = position_of_offset(known.path, known.offset, self._options.from_offset)
        walk = LogWalk(known.path, start=start)
        is_metadata = self._options.cluster_metadata or known.type is FileType.METADATA_SNAPSHOT
        for step in walk:
            last_offset = step.last_offset
            if self._options.from_offset is not None and last_offset < self._options.from_offset:
                continue
            if self._options.max_batches is not None and self._batches >= self._options.max_batches:
                raise _EnoughError
            self._batches += 1
            self._dump_step(step, is_metadata)
        if walk.end_fault is not None:
            if self._options.as_json:
                self._emit(
                    "invalidBytes", {"position": walk.position, "size": walk.left_bytes, "fault": walk.end_fault}
                )
            else:
                self._print(f"Found {walk.left_bytes} invalid bytes at the end of {known.path.name}")

    def _dump_step(self, step: StoredBatch | StoredMessage, is_metadata: bool) -> None:
        if isinstance(step, StoredMessage):
            self._emit("message", message_fields(step))
        else:
            self._emit("batch", batch_fields(step))
        if not self._options.records:
            return
        try:
            self._dump_records(step, is_metadata)
        except DecodeError as error:
            self._fail(f"{self._file}: position {step.position}: records cannot be read: {error}")

    def _dump_records(self, step: StoredBatch | StoredMessage, is_metadata: bool) -> None:
        is_control = isinstance(step, StoredBatch) and step.batch.is_control
        for fields, record in stored_records(step):
            if self._options.from_offset is not None and record.offset < self._options.from_offset:
                continue
            if self._options.max_records is not None and self._records >= self._options.max_records:
                raise _EnoughError
            self._records += 1
            self._dump_record(fields, record, is_control=is_control, is_metadata=is_metadata)

    def _dump_record(self, fields: Fields, record: Record, *, is_control: bool, is_metadata: bool) -> None:
        try:
            if is_control:
                self._emit_control(fields, control_fields(record))
            elif not self._options.data:
                self._emit("record", fields, "| ")
            elif is_metadata:
                decoded = metadata_json(record.value)
                self._emit(
                    "record", {**fields, "payload": decoded if self._options.as_json else _compact(decoded)}, "| "
                )
            elif self._options.coordinator is not None:
                self._emit("record", {**fields, **self._coordinator_data(record, self._options.coordinator)}, "| ")
            elif self._options.as_json:
                self._emit("record", {**fields, **record_json_data(record)})
            else:
                self._emit("record", {**fields, **record_text_data(record)}, "| ")
        except DecodeError as error:
            self._emit("record", fields, "| ")
            self._fail(f"{self._file}: the record of offset {record.offset} cannot be decoded: {error}")

    def _coordinator_data(self, record: Record, coordinator: CoordinatorLog) -> Fields:
        found = coordinator_json(coordinator, record.key, record.value)
        if self._options.as_json:
            if isinstance(found, UnknownType):
                return {"key": {"type": str(found.number)}}
            return {"key": found.key, "payload": found.payload}
        if isinstance(found, UnknownType):
            return {"key": f"Unknown record type {found.number} at offset {record.offset}, skipping."}
        payload = "<DELETE>" if found.payload is None else _compact(found.payload)
        return {"key": _compact(found.key), "payload": payload}

    def _emit_control(self, fields: Fields, control: Fields) -> None:
        if self._options.as_json:
            self._emit("record", {**fields, **control})
            return
        text = text_line(fields)
        for name, value in control.items():
            # Kafka's tool writes a colon after this record's name only.
            colon = "" if isinstance(value, dict) and name != "LeaderChange" else ":"
            text += f" {name}{colon} {_compact(value) if isinstance(value, dict) else value}"
        self._print(f"| {text}")

    # -- indexes

    def _dump_index(self, content: IndexContent[Any], kind: str, fields_of: Any) -> None:
        wanted = self._options.from_offset
        if not content.entries and not self._options.as_json:
            self._print(f"{self._file} is empty.")
        for entry in content.entries:
            fields = fields_of(entry)
            if wanted is None or fields.get("offset", fields.get("lastOffset")) >= wanted:
                self._emit(kind, fields)
        if content.odd_bytes:
            self._fail(f"{self._file}: {content.odd_bytes} bytes at the end are not a whole entry")

    # -- output

    def _emit(self, kind: str, fields: Fields, indent: str = "") -> None:
        if self._options.as_json:
            self._print(json.dumps({"type": kind, "file": str(self._file), **fields}))
        else:
            self._print(indent + text_line(fields))

    def _print(self, line: str) -> None:
        self._lines.append(line)
        self._pending_characters += len(line)
        if self._pending_characters >= _FLUSH_CHARACTERS:
            self._flush()

    def _flush(self) -> None:
        if self._lines:
            data = ("\n".join(self._lines) + "\n").encode("utf-8", "backslashreplace")
            self._lines.clear()
            self._pending_characters = 0
            self._output.write(data)
            self._output.flush()

    def _fail(self, sentence: str) -> None:
        self._flush()
        self.failures += 1
        print_note(sentence)


def _log_title(known: KnownFile) -> str:
    """Kafka's line after the file's name."""
    if known.type is FileType.LOG:
        return f"Log starting offset: {known.offset}"
    if known.offset < 0:
        return "KRaft bootstrap snapshot"
    return f"Snapshot end offset: {known.offset}, epoch: {int(known.path.name.partition('-')[2][:10])}"


def _small_file_fields(known: KnownFile) -> Iterator[Fields]:
    """Read the lines of a checkpoint or properties file. Raises CorruptFileError, OSError."""
    match known.type:
        case FileType.OFFSET_CHECKPOINT:
            for topic_partition, offset in OffsetCheckpointFile(known.path).read().items():
                yield {"topic": topic_partition.topic, "partition": topic_partition.partition, "offset": offset}
        case FileType.EPOCH_CHECKPOINT:
            yield from _epoch_fields(known.path)
        case FileType.PARTITION_METADATA:
            topic_id = read_partition_metadata(known.path.parent)
            yield {"version": 0, "topicId": None if topic_id is None else uuid_text(topic_id)}
        case FileType.META_PROPERTIES:
            yield from _meta_properties_fields(known.path.parent)
        case _:
            yield {"content": known.path.read_text("utf-8", "replace").strip()}


def _epoch_fields(path: Path) -> Iterable[Fields]:
    for line in read_checkpoint_lines(path):
        epoch, _, start = line.partition(" ")
        if not (epoch.isdecimal() and start.isdecimal()):
            raise CorruptFileError(path, f"line {line!r} is not `epoch start_offset`")
        yield {"epoch": int(epoch), "startOffset": int(start)}


def _meta_properties_fields(directory: Path) -> Iterable[Fields]:
    from barnabas.broker.metadata.directories.meta_properties import FILE_NAME, read_meta_properties
    from barnabas.broker.metadata.errors import MetadataError

    try:
        found = read_meta_properties(directory)
    except MetadataError as error:
        raise CorruptFileError(directory / FILE_NAME, str(error)) from error
    if found is not None:
        yield {
            "version": found.version,
            "node.id": found.node_id,
            "cluster.id": found.cluster_id,
            "directory.id": None if found.directory_id is None else uuid_text(found.directory_id),
        }


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
