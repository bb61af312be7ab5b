"""Inventory of a log directory by file names and partition.metadata. Read-only.

A directory that is not named like a partition, a partition in two directories, and a partition directory with the topic
id of another topic each stop a start, because any use of that directory could lose records. An unknown topic id is not
a problem: the topic was deleted, and its directory is set aside.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from barnabas.broker.metadata.directories.meta_properties import FILE_NAME, MetaProperties, read_meta_properties
from barnabas.broker.metadata.directories.report import (
    WRITERS,
    LogDirectoryReport,
    Problem,
)
from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.log import bootstrap_checkpoint
from barnabas.broker.metadata.log.log_replay import METADATA_DIRECTORY
from barnabas.broker.storage.files.clean_shutdown import CLEAN_SHUTDOWN_FILE
from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.files.file_names import parse_file_name
from barnabas.broker.storage.files.leader_epoch import LEADER_EPOCH_CHECKPOINT
from barnabas.broker.storage.files.partition_directory import (
    IGNORED_DIRECTORIES,
    DirectoryKind,
    parse_directory_name,
)
from barnabas.broker.storage.files.partition_metadata_file import (
    PARTITION_METADATA_FILE,
    is_torn_partition_metadata,
    partition_metadata_content,
    read_partition_metadata,
)
from barnabas.protocol.topic_name import CLUSTER_METADATA_TOPIC
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.uuids import METADATA_TOPIC_UUID, uuid_text


def list_log_directory(path: Path, *, is_log_dir: bool) -> tuple[LogDirectoryReport, list[Problem]]:
    """List a log directory by kind of entry; return the report and its problems. Raises OSError."""
    kinds: dict[DirectoryKind, list[Path]] = {kind: [] for kind in DirectoryKind}
    partitions: dict[TopicPartition, Path] = {}
    problems: list[Problem] = []
    exists = path.exists()
    for entry in _directories(path) if exists else ():
        parsed = parse_directory_name(entry.name)
        if parsed is None:
            problems.append(_foreign(entry))
        elif parsed.kind is not DirectoryKind.CURRENT:
            kinds[parsed.kind].append(entry)
        elif parsed.topic_partition.topic != CLUSTER_METADATA_TOPIC:
            partitions[parsed.topic_partition] = entry
    properties, fault = _properties(path)
    if properties is None and fault is None:
        holds = [*partitions.values(), *chain(*kinds.values()), path / METADATA_DIRECTORY]
        data = next((each for each in holds if each.is_dir()), None)
        fault = None if data is None else f"{path} has no {FILE_NAME}, but holds {data.name}"
    report = LogDirectoryReport(
        path=path,
        is_log_dir=is_log_dir,
        exists=exists,
        properties=properties,
        has_marker=(path / CLEAN_SHUTDOWN_FILE).exists(),
        partitions=partitions,
        deleting=tuple(kinds[DirectoryKind.DELETE]),
        strays=tuple(kinds[DirectoryKind.STRAY]),
        futures=tuple(kinds[DirectoryKind.FUTURE]),
        fault=fault,
        strangers=_strangers(path) if exists and properties is None and fault is None else (),
    )
    return report, problems if is_log_dir else []


def misplaced_partitions(
    directories: Sequence[LogDirectoryReport], image: MetadataImage, torn: dict[Path, bytes]
) -> Iterator[Problem]:
    """Yield partitions found twice, or in a directory of another topic. Raises OSError.

    A directory whose partition.metadata is the beginning of the right one is no problem: it is added to `torn`, with
    the topic id.
    """
    owner: dict[TopicPartition, Path] = {}
    for directory in directories:
        for topic_partition, path in directory.partitions.items():
            other = owner.setdefault(topic_partition, path)
            if other != path:
                yield Problem(
                    "two-directories",
                    f"{topic_partition} is in two log directories, in {other} and in {path}",
                    "remove the outdated one",
                    WRITERS,
                )
            yield from _topic_id_problem(topic_partition, path, image, torn)


def metadata_log_problems(directory: Path, torn: dict[Path, bytes]) -> Iterator[Problem]:
    """Yield files in the metadata log's directory that would stop a start, Kafka's too. Raises OSError.

    `torn` as in `misplaced_partitions`.
    """
    for path in _no_files(directory):
        yield Problem("damaged-metadata", f"{path} is not a file", "move it away, and restore the file", WRITERS)
    code, remedy = "damaged-partition-metadata", "remove the file: it is written again"
    try:
        topic_id = read_partition_metadata(directory)
    except CorruptFileError as error:
        if is_torn_partition_metadata(directory, METADATA_TOPIC_UUID):
            torn[directory] = METADATA_TOPIC_UUID
        else:
            yield Problem(code, str(error), remedy, WRITERS)
        return
    if topic_id not in (None, METADATA_TOPIC_UUID):
        said, right = uuid_text(topic_id), uuid_text(METADATA_TOPIC_UUID)
        sentence = f"{directory} has the topic id {said} instead of the metadata log's, {right}"
        yield Problem(code, sentence, remedy, WRITERS)


def _no_files(directory: Path) -> list[Path]:
    """Return entries that are named like a file of the log and are not regular files."""
    found = sorted(directory.iterdir()) if directory.is_dir() else []
    named = (path for path in found if parse_file_name(path.name) or path.name == LEADER_EPOCH_CHECKPOINT)
    return [path for path in named if not path.is_file()]


def _topic_id_problem(
    topic_partition: TopicPartition, path: Path, image: MetadataImage, torn: dict[Path, bytes]
) -> Iterator[Problem]:
    topic = image.topics.get(topic_partition.topic)
    if topic is not None and _says_as_usual(path, topic.topic_id):
        return
    try:
        topic_id = read_partition_metadata(path)
    except CorruptFileError as error:
        is_known = topic is not None and topic_partition.partition in topic.partitions
        if topic is not None and is_known and is_torn_partition_metadata(path, topic.topic_id):
            torn[path] = topic.topic_id
            return
        remedy = "restore the file, or remove it" + ("" if topic is None else ": the metadata log has the topic id")
        yield Problem("damaged-partition-metadata", str(error), remedy, WRITERS)
        return
    named = None if topic_id is None else image.topic_by_id(topic_id)
    if topic_id is not None and named is not None and named.name != topic_partition.topic:
        yield Problem(
            "foreign-topic-id",
            f"{path} has the topic id {uuid_text(topic_id)}, which belongs to topic {named.name}",
            f"find out whose records these are: rename the directory to {named.name}-<partition>, or move it away",
            WRITERS,
        )


def _says_as_usual(path: Path, topic_id: bytes) -> bool:
    """Return whether partition.metadata has exactly the usual bytes. A fast path: a start checks every partition."""
    expected = partition_metadata_content(topic_id)
    try:
        descriptor = os.open(f"{path}/{PARTITION_METADATA_FILE}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.read(descriptor, len(expected) + 1) == expected
    finally:
        os.close(descriptor)


def _directories(path: Path) -> Iterator[Path]:
    with os.scandir(path) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_dir() and entry.name not in IGNORED_DIRECTORIES:
                yield path / entry.name


def _foreign(path: Path) -> Problem:
    return Problem(
        "foreign-directory",
        f"{path} is not named <topic>-<partition>, and a log directory holds partitions only",
        "move it away",
        WRITERS,
    )


def _strangers(path: Path) -> tuple[str, ...]:
    """Return the visible files of a directory that is not used yet. A start may have ended after its first file."""
    with os.scandir(path) as entries:
        names = sorted(entry.name for entry in entries if entry.is_file())
    ours = (bootstrap_checkpoint.FILE_NAME, FILE_NAME)
    return tuple(name for name in names if not name.startswith((".", *ours)))


def _properties(path: Path) -> tuple[MetaProperties | None, str | None]:
    """Return the content of meta.properties, or why it cannot be used."""
    try:
        return read_meta_properties(path), None
    except MetadataError as error:
        return None, error.sentence
