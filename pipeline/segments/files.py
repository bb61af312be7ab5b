"""File systems of segment files: the local one, read by system calls, and those of pyarrow.

A path without a scheme, or with `file:`, is local. `s3://`, `gs://`, `hdfs://`, `abfs://` and the like go through
pyarrow.fs, whose credentials come from the environment, as for Parquet read by pyarrow.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from barnabas.broker.storage.files.file_names import DELETED_SUFFIX, SWAP_SUFFIX
from barnabas.pipeline.errors import SourceError

_HADOOP_NAMES = ("s3a", "s3n")


class Entry(NamedTuple):
    """A directory entry, with its full path."""

    name: str
    path: str
    is_directory: bool
    size_bytes: int


class OpenFile(Protocol):
    """A file open for reading by position."""

    def read_into(self, target: memoryview, position: int) -> int:
        """Fill `target`; return the number of bytes, fewer only at the file's end. Raises OSError."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


class FileSystem(Protocol):
    """Access to one kind of path. All methods raise OSError."""

    def entry(self, path: str) -> Entry:
        """Return the entry of a path. Raises FileNotFoundError."""
        ...

    def list(self, path: str) -> list[Entry]:
        """Return the entries of a directory, sorted by name."""
        ...

    def open(self, path: str) -> OpenFile:
        """Open a file for reading."""
        ...


def file_system(path: str) -> tuple[FileSystem, str]:
    """Return (the file system of a path or URI, the path on it). Raises SourceError for an unknown scheme."""
    scheme = urlsplit(path).scheme if "://" in path or path.startswith("file:") else ""
    if not scheme:
        return LocalFileSystem(), path
    if scheme == "file":
        return LocalFileSystem(), unquote(urlsplit(path).path)
    from pyarrow import fs

    if scheme in _HADOOP_NAMES:
        raise SourceError(f"{path}: {scheme} is a scheme of Hadoop's that pyarrow does not support: write s3://...")
    try:
        found, inner = fs.FileSystem.from_uri(path)
    except (ValueError, OSError) as error:
        raise SourceError(f"{path}: no file system of pyarrow supports it: {error}") from error
    return ArrowFileSystem(found, scheme), inner


def open_even_deleted(system: FileSystem, path: str) -> OpenFile:
    """Open a file, even as `.deleted`: brokers rename deleted files and remove them file.delete.delay.ms later.

    A `.swap` file of a compaction may have got its final name since the read was planned. Raises FileNotFoundError,
    naming `path`, once it is removed; OSError.
    """
    try:
        return system.open(path)
    except FileNotFoundError as error:
        final = path.removesuffix(SWAP_SUFFIX)
        for other in (path + DELETED_SUFFIX, *([final, final + DELETED_SUFFIX] if final != path else ())):
            with contextlib.suppress(FileNotFoundError):
                return system.open(other)
        raise error from None


def read_all(system: FileSystem, path: str, size_bytes: int) -> bytes:
    """Read a small file, even one renamed to `.deleted`. Raises OSError."""
    content = memoryview(bytearray(size_bytes))
    file = open_even_deleted(system, path)
    try:
        return bytes(content[: file.read_into(content, 0)])
    finally:
        file.close()


class LocalFileSystem:
    """The local file system; segments are read with `preadv` into a reused buffer."""

    def entry(self, path: str) -> Entry:
        """See FileSystem."""
        return _local_entry(Path(path))

    def list(self, path: str) -> list[Entry]:
        """See FileSystem. A file deleted meanwhile is left out."""
        found = []
        for each in sorted(Path(path).iterdir()):
            try:
                found.append(_local_entry(each))
            except FileNotFoundError:
                continue
        return found

    def open(self, path: str) -> OpenFile:
        """See FileSystem."""
        return _LocalFile(path)


class _LocalFile:
    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def read_into(self, target: memoryview, position: int) -> int:
        filled = 0
        while filled < len(target):
            count = os.preadv(self._descriptor, (target[filled:],), position + filled)
            if not count:
                break
            filled += count
        return filled

    def close(self) -> None:
        os.close(self._descriptor)


class ArrowFileSystem:
    """A file system of pyarrow.fs. Errors name the full address, and hint at credentials when the store refuses."""

    def __init__(self, system: Any, scheme: str) -> None:
        self._system = system
        self._scheme = scheme

    def entry(self, path: str) -> Entry:
        """See FileSystem."""
        with self._naming(path):
            return _arrow_entry(self._system.get_file_info(path))

    def list(self, path: str) -> list[Entry]:
        """See FileSystem."""
        from pyarrow import fs

        with self._naming(path):
            return sorted(_arrow_entry(each) for each in self._system.get_file_info(fs.FileSelector(path)))

    def open(self, path: str) -> OpenFile:
        """See FileSystem."""
        with self._naming(path):
            return _ArrowFile(self._system.open_input_file(path))

    @contextmanager
    def _naming(self, path: str) -> Iterator[None]:
        """Raise OSError with the full address."""
        address = f"{self._scheme}://{path}"
        try:
            yield
        except FileNotFoundError as error:
            raise FileNotFoundError(errno.ENOENT, "no such file, directory or bucket", address) from error
        except OSError as error:
            remedy = "; look at the credentials and their rights" if _is_refused(error) else ""
            raise OSError(f"{address}: {str(error).rstrip('.')}{remedy}") from error


class _ArrowFile:
    def __init__(self, file: Any) -> None:
        self._file = file

    def read_into(self, target: memoryview, position: int) -> int:
        self._file.seek(position)
        filled = 0
        while filled < len(target):
            count = self._file.readinto(target[filled:])
            if not count:
                break
            filled += count
        return filled

    def close(self) -> None:
        self._file.close()


def _local_entry(path: Path) -> Entry:
    status = path.stat()
    return Entry(path.name, str(path), path.is_dir(), status.st_size)


def _is_refused(error: OSError) -> bool:
    """Return whether the store answered 401 or 403, which pyarrow reports as text only."""
    return any(
        word in str(error) for word in ("ACCESS_DENIED", "INVALID_ACCESS_KEY", "HTTP status 403", "HTTP status 401")
    )


def _arrow_entry(info: Any) -> Entry:
    from pyarrow import fs

    if info.type == fs.FileType.NotFound:
        raise FileNotFoundError(2, "no such file or directory", info.path)
    return Entry(info.base_name, info.path, info.type == fs.FileType.Directory, info.size or 0)
