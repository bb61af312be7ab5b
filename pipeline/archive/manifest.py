"""Manifests of an archive's micro-batches; creating a manifest commits its micro-batch.

    <archive>/_barnabas/<name>/manifests/<batch:010d>.json
        {"version": 1, "query": "<id of the streaming query>", "files": [{temporary, final, topic, ...}],
         "offsets": [{"<topic>": {"<partition>": <next offset>}}]}     where the micro-batch ends, by its checkpoint
    <archive>/_barnabas/<name>/temporary/<batch:010d>-<...>/<...>.parquet
    <archive>/_barnabas/<name>/checkpoint/                                  Spark's own

The tasks of a micro-batch write temporary files. The commit writes the manifest (once: a second attempt uses the
first one's), then moves the files to their final names. So a micro-batch that Spark runs again adds nothing: with a
manifest, only the remaining files are moved; without one, nothing is visible, and the temporary files are removed. A
listing of the archive may lack files between a crash and the next run, but never has a record twice.

A checkpoint older than the archive (restored, or its last file, which Spark does not sync, lost in a power cut) would
plan a committed micro-batch with a different end, and lose the records between the two. So the ends are compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from pyarrow import fs

from barnabas.pipeline.archive.files import ArchivedFile
from barnabas.pipeline.durability import make_durable
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.state_files import StateFiles, open_location

STATE_DIRECTORY: Final = "_barnabas"
DEFAULT_NAME: Final = "archive"
VERSION: Final = 1


class ArchiveState:
    """The state directory `_barnabas/<name>` of one archive."""

    def __init__(self, archive: str, name: str = DEFAULT_NAME) -> None:
        self.archive = archive.rstrip("/")
        self.name = name
        self.file_system, self.root = open_location(self.archive)
        self._directory = f"{STATE_DIRECTORY}/{name}"
        self._manifests = StateFiles(f"{self.archive}/{self._directory}/manifests")

    @property
    def checkpoint(self) -> str:
        """The value of Spark's `checkpointLocation`."""
        return f"{self.archive}/{self._directory}/checkpoint"

    def temporary_directory(self, batch_id: int, owner: str) -> str:
        """Return the directory of one attempt of one task, relative to the archive."""
        return f"{self._directory}/temporary/{batch_id:010d}-{owner}"

    def batches(self) -> list[int]:
        """Return the committed micro-batches, in order. Raises OSError."""
        return [int(name.removesuffix(".json")) for name in self._manifests.names() if name.endswith(".json")]

    def is_committed(self, batch_id: int, query: str) -> bool:
        """Return whether the micro-batch has a manifest. Raises PipelineError for another query's manifest, OSError."""
        if batch_id not in self.batches():
            return False
        found, _ = self._read(batch_id)
        if found != query:
            raise PipelineError(
                f"{self.archive}: micro-batch {batch_id} was archived by query {found}, this is {query}: the "
                f"archive was written with another checkpoint than {self._directory}/checkpoint; restore that one, or "
                "archive to another directory"
            )
        return True

    def files(self, batch_id: int) -> list[ArchivedFile]:
        """Return the files of a committed micro-batch. Raises OSError, PipelineError."""
        return self._read(batch_id)[1]

    def commit(self, batch_id: int, query: str, files: Iterable[ArchivedFile]) -> list[ArchivedFile]:
        """Commit the micro-batch, once; return its files. Raises OSError, PipelineError."""
        planned = self._planned_offsets(batch_id)
        if self.is_committed(batch_id, query):
            self._ensure_same_end(batch_id, planned)
        else:
            manifest = {
                "version": VERSION,
                "query": query,
                "files": [file._asdict() for file in files],
                "offsets": planned,
            }
            self._manifests.create(_manifest_name(batch_id), json.dumps(manifest, indent=1).encode())
        committed = self.files(batch_id)
        self.finish(committed)
        self._remove_temporaries(batch_id)
        return committed

    def finish(self, files: Iterable[ArchivedFile]) -> None:
        """Move files to their final names, unless they are there already.

        Raises OSError; PipelineError for a lost file, or when another file has its name.
        """
        directories: set[str] = set()
        for file in files:
            source, target = f"{self.root}/{file.temporary}", f"{self.root}/{file.final}"
            there = self.file_system.get_file_info(target)
            if there.type is fs.FileType.File:
                self._ensure_moved(source, there.size, file)
                continue
            if self.file_system.get_file_info(source).type is not fs.FileType.File:
                raise PipelineError(
                    f"{self.archive}: {file.final} is listed in a manifest but missing, and so is {file.temporary}"
                )
            directory = target.rpartition("/")[0]
            if directory not in directories:
                self.file_system.create_dir(directory, recursive=True)
                directories.add(directory)
            self.file_system.move(source, target)
        if isinstance(self.file_system, fs.LocalFileSystem):
            make_durable(directories)

    def _ensure_moved(self, source: str, size_at_target: int, file: ArchivedFile) -> None:
        """Check that the target is this file, and not one of an earlier topic of the same name."""
        left = self.file_system.get_file_info(source)
        if left.type is not fs.FileType.File:
            return
        if not isinstance(self.file_system, fs.LocalFileSystem) and left.size == size_at_target:
            return  # an object store moves by copy and deletion, and was stopped between them
        raise PipelineError(
            f"{self.archive}: {file.final} already exists, from another topic named {file.topic!r}: move that topic's "
            f"archive elsewhere and run this again; {file.temporary} is kept"
        )

    def _read(self, batch_id: int) -> tuple[str, list[ArchivedFile]]:
        name = _manifest_name(batch_id)
        try:
            manifest = json.loads(self._manifests.read(name))
            if manifest["version"] != VERSION:
                raise PipelineError(f"{self.archive}: manifest {name} has version {manifest['version']}, not {VERSION}")
            return manifest["query"], [ArchivedFile(**file) for file in manifest["files"]]
        except (ValueError, TypeError, KeyError) as error:
            raise PipelineError(f"{self.archive}: manifest {name} cannot be read: {error}") from error

    def _planned_offsets(self, batch_id: int) -> list[Any] | None:
        """Return the end of the micro-batch. Spark's file has a version, metadata, and a line for each source.

        None when pyarrow does not find the checkpoint. Raises OSError.
        """
        try:
            content = StateFiles(f"{self.checkpoint}/offsets").read(str(batch_id))
            return [json.loads(line) for line in content.decode().splitlines()[2:]]
        except (FileNotFoundError, ValueError):
            return None

    def _ensure_same_end(self, batch_id: int, planned: list[Any] | None) -> None:
        archived = self._ends(batch_id)
        if archived is None or planned is None or archived == planned:
            return
        last = self._ends(self.batches()[-1]) or archived
        ends = {topic: partitions for source in last for topic, partitions in source.items() if partitions}
        raise PipelineError(
            f"{self.archive}: micro-batch {batch_id} was archived up to {json.dumps(archived)}, but the checkpoint "
            f"plans it up to {json.dumps(planned)}, because it is older than the archive; continue under another "
            f"name (--name), from startingOffsets={json.dumps(ends)}"
        )

    def _ends(self, batch_id: int) -> list[Any] | None:
        ends: list[Any] | None = json.loads(self._manifests.read(_manifest_name(batch_id))).get("offsets")
        return ends  # None in manifests of older versions

    def _remove_temporaries(self, upto_batch: int) -> None:
        """Remove temporary files of this and earlier micro-batches."""
        selector = fs.FileSelector(f"{self.root}/{self._directory}/temporary", allow_not_found=True)
        for info in self.file_system.get_file_info(selector):
            if info.type is fs.FileType.Directory and int(info.base_name.partition("-")[0]) <= upto_batch:
                self.file_system.delete_dir(info.path)


def _manifest_name(batch_id: int) -> str:
    return f"{batch_id:010d}.json"
