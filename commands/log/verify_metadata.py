"""The checks of `barnabas log verify` that need the metadata.

`meta.properties` is readable, the metadata log can be replayed, and the partitions on disk are those in it: a start
renames others to `-stray`, and creates missing ones again, empty. The last check needs all of a node's data
directories: a partition counts as missing only if the metadata assigns it to one of the given directories.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from barnabas.broker.metadata.directories.meta_properties import FILE_NAME, read_meta_properties
from barnabas.broker.metadata.directories.reconcile import is_stray
from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.log.log_replay import METADATA_DIRECTORY, replay_metadata_directory
from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.files.partition_directory import DirectoryKind, parse_directory_name
from barnabas.broker.storage.files.partition_metadata_file import read_partition_metadata
from barnabas.broker.storage.inspection.findings import Finding
from barnabas.broker.storage.inspection.lock_probe import lock_holder
from barnabas.broker.storage.inspection.verify_directory import is_partition_directory, partition_directories
from barnabas.protocol.topic_partition import TopicPartition


def metadata_findings(directories: Sequence[Path]) -> Iterator[Finding]:
    """Check data directories, or a metadata log's own directory; other partitions' are skipped. Raises OSError."""
    log_dirs: dict[Path, bytes | None] = {}
    image: MetadataImage | None = None
    metadata_log = Path()
    for directory in directories:
        is_metadata_log = directory.absolute().name == METADATA_DIRECTORY
        if not is_metadata_log:
            if is_partition_directory(directory):
                continue
            try:
                properties = read_meta_properties(directory)
                log_dirs[directory] = None if properties is None else properties.directory_id
            except MetadataError as error:
                yield Finding(directory / FILE_NAME, None, str(error))
        found = directory if is_metadata_log else directory / METADATA_DIRECTORY
        try:
            replayed = _replay(found)
        except MetadataError as error:
            yield Finding(found, None, f"the metadata cannot be replayed: {error}")
            continue
        if replayed is not None and not is_metadata_log:
            image, metadata_log = replayed, found
    if image is not None and all(lock_holder(log_dir) is None for log_dir in log_dirs):
        yield from _compare(image, metadata_log, log_dirs)


def _replay(directory: Path) -> MetadataImage | None:
    """Replay a metadata log, None without one. Raises MetadataError."""
    # Damage that it skips with a warning (a torn snapshot, a torn tail) was found by the check of the files.
    logger = logging.getLogger("barnabas.broker.metadata")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        replayed = replay_metadata_directory(directory)
    finally:
        logger.setLevel(level)
    return replayed.image if replayed.exists else None


def _compare(image: MetadataImage, metadata_log: Path, log_dirs: dict[Path, bytes | None]) -> Iterator[Finding]:
    on_disk: set[TopicPartition] = set()
    for log_dir in log_dirs:
        for path in partition_directories(log_dir):
            parsed = parse_directory_name(path.name)
            if parsed is None or parsed.kind is not DirectoryKind.CURRENT or path.name == METADATA_DIRECTORY:
                continue
            on_disk.add(parsed.topic_partition)
            try:
                topic_id = read_partition_metadata(path)
            except CorruptFileError:
                continue  # found by the check of the files
            if is_stray(image, parsed.topic_partition, topic_id):
                yield Finding(path, None, "the metadata log does not have this partition: a start renames it to -stray")
    ids = set(log_dirs.values())
    for topic in image.topics.values():
        for number, state in topic.partitions.items():
            topic_partition = TopicPartition(topic.name, number)
            if topic_partition not in on_disk and ids.intersection(state.directories):
                yield Finding(
                    metadata_log, None, f"has {topic_partition}, which is not on disk: a start creates it again, empty"
                )
