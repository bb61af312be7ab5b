"""Small write-once files that later runs depend on, on a local disk or any file system of pyarrow.

`create` is the only way to write: the first writer wins, and every caller gets the stored content. On a local disk
creation is exclusive (a hard link never replaces a file) and durable. Elsewhere pyarrow has no exclusive creation: two
simultaneous attempts of one task (spark.speculation) could both win, so speculation must be off there.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from pyarrow import fs

from barnabas.pipeline.durability import make_durable
from barnabas.pipeline.errors import SourceError


class StateFiles:
    """The files of one directory. `location` is an absolute path or a URI (file:, hdfs:, s3:, gs:)."""

    def __init__(self, location: str) -> None:
        self._location = location.rstrip("/")
        self._file_system, self._path = open_location(location)
        self._local = Path(self._path) if isinstance(self._file_system, fs.LocalFileSystem) else None

    @property
    def is_exclusive(self) -> bool:
        """Whether of several simultaneous `create` calls exactly one wins."""
        return self._local is not None

    def names(self) -> list[str]:
        """Return the file names, sorted; empty when the directory does not exist. Raises OSError."""
        if self._local is not None:
            try:
                return sorted(name for name in os.listdir(self._local) if not name.startswith("."))
            except FileNotFoundError:
                return []
        selector = fs.FileSelector(self._path, allow_not_found=True)
        return sorted(info.base_name for info in self._file_system.get_file_info(selector) if info.is_file)

    def directories(self) -> list[str]:
        """Return the names of the directories in this one, sorted. Raises OSError."""
        selector = fs.FileSelector(self._path, allow_not_found=True)
        infos = self._file_system.get_file_info(selector)
        return sorted(info.base_name for info in infos if info.type is fs.FileType.Directory)

    def within(self, directory: str) -> StateFiles:
        """Return the files of a directory in this one, which need not exist."""
        return StateFiles(f"{self._location}/{directory}")

    def exists(self, name: str) -> bool:
        """Whether the file exists. Raises OSError."""
        return bool(self._file_system.get_file_info(f"{self._path}/{name}").is_file)

    def remove(self, name: str) -> None:
        """Delete a file, if it exists. Raises OSError."""
        try:
            self._file_system.delete_file(f"{self._path}/{name}")
        except FileNotFoundError:
            return

    def remove_directory(self) -> None:
        """Delete the directory with all its files, if it exists. Raises OSError."""
        try:
            self._file_system.delete_dir(self._path)
        except FileNotFoundError:
            return

    def read(self, name: str) -> bytes:
        """Return the content of a file. Raises OSError."""
        with self._file_system.open_input_stream(f"{self._path}/{name}") as stream:
            content: bytes = stream.read()
        return content

    def create(self, name: str, content: bytes) -> bytes:
        """Create the file unless it exists; return the stored content. Raises OSError."""
        if self._local is None:
            if name not in self.names():
                self._file_system.create_dir(self._path, recursive=True)
                with self._file_system.open_output_stream(f"{self._path}/{name}") as stream:
                    stream.write(content)
            return self.read(name)
        self._local.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=self._local)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(temporary, self._local / name)
            except FileExistsError:
                return self.read(name)
        finally:
            os.unlink(temporary)
        make_durable([str(self._local)])
        return content


def open_location(location: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a path or URI, and the path in it. Raises SourceError."""
    if "://" not in location and not location.startswith("file:"):
        return fs.LocalFileSystem(), os.path.abspath(location)
    if location.startswith("file:"):
        return fs.LocalFileSystem(), os.path.abspath("/" + location.removeprefix("file:").lstrip("/"))
    try:
        file_system, path = fs.FileSystem.from_uri(location.replace("s3a://", "s3://", 1))
    except (OSError, ValueError) as error:
        raise SourceError(f"{location}: no file system for it: {error}") from error
    return file_system, path.rstrip("/")
