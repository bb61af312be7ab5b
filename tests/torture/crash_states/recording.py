"""Record every change to the files below a directory, in order, while a workload runs in this process.

    with Recorder(root) as recorder:
        ...                                  # open a LogManager below `root`, append, flush
        recorder.note(Durable(...))          # what was promised so far
    recorder.events

The recorder replaces the functions of `os` that change files, and the two methods by which the storage layer stores
into mapped indexes. Appends must not use the compiled kernel, whose writes Python cannot see: it is off while the
recorder is on. A test compares the last state of the recording with the real directory, so a way to write that the
recorder does not know is found.

A file or directory is a node with a number. Numbers are not inode numbers, which the kernel uses again.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from barnabas.broker.storage.index.abstract_index import AbstractIndex
from barnabas.broker.storage.index.offset_index import OffsetIndex
from barnabas.broker.storage.index.time_index import TimeIndex
from barnabas.broker.storage.kernels import kernel

ROOT = 0
"""The node of the recorded directory itself."""


class Write(NamedTuple):
    """Bytes were written into a file."""

    node: int
    position: int
    data: bytes


class Resize(NamedTuple):
    """A file got another size by truncation, extension or allocation."""

    node: int
    size: int


class Link(NamedTuple):
    """A new file or directory got its first name."""

    directory: int
    name: str
    node: int
    is_directory: bool = False


class Unlink(NamedTuple):
    """A name was removed: of a file, or of an empty directory."""

    directory: int
    name: str


class Rename(NamedTuple):
    """A file or directory got another name, which may have belonged to another file."""

    directory: int
    name: str
    to_directory: int
    to_name: str
    node: int


class Sync(NamedTuple):
    """A file's content and size, or a directory's entries, were made durable."""

    node: int


class Note(NamedTuple):
    """What the workload says at this moment; see promises.py."""

    said: object


Event = Write | Resize | Link | Unlink | Rename | Sync | Note


class Tree(NamedTuple):
    """The files before the recording, all of them durable."""

    directories: dict[int, dict[str, int]]
    files: dict[int, bytes]


class Recorder:
    """Records the changes below `root` inside its with block. Only one at a time."""

    def __init__(self, root: Path, seed: int = 0) -> None:
        """Random names and ids of the broker are drawn from `seed`, so that a recording can be repeated."""
        self.root = root
        self.events: list[Event] = []
        self.tree = Tree({}, {})
        self._prefix = f"{root}/"
        self._random = random.Random(seed)
        self._nodes: dict[tuple[int, int], int] = {}
        """Node of each inode that has a name below the root."""
        self._count = 0
        self._lock = threading.RLock()
        self._replaced: list[tuple[Any, str, Any]] = []

    def note(self, said: object) -> None:
        """Add what the workload promises from here on."""
        with self._lock:
            self.events.append(Note(said))

    def __enter__(self) -> Self:
        self._scan(os.fspath(self.root))
        for recorded, names in (
            (self._open, ("open",)),
            (self._write, ("write",)),
            (self._pwrite, ("pwrite",)),
            (self._sendfile, ("sendfile",)),
            (self._ftruncate, ("ftruncate",)),
            (self._truncate, ("truncate",)),
            (self._posix_fallocate, ("posix_fallocate",)),
            (self._rename, ("rename", "replace")),
            (self._unlink, ("unlink", "remove", "rmdir")),
            (self._mkdir, ("mkdir",)),
            (self._fsync, ("fsync", "fdatasync")),
        ):
            for name in names:
                self._replace(os, name, recorded)
        self._replace(os, "urandom", lambda _: self._random.randbytes)
        self._replace(OffsetIndex, "append", self._stores)
        self._replace(TimeIndex, "maybe_append", self._stores)
        self._replaced.append((kernel, "_append_kernel", kernel._append_kernel))
        kernel._append_kernel = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        while self._replaced:
            setattr(*self._replaced.pop())

    def _replace(self, owner: Any, name: str, build: Callable[[Any], Callable[..., Any]]) -> None:
        real = getattr(owner, name)
        self._replaced.append((owner, name, real))
        setattr(owner, name, build(real))

    # -- the functions of os

    def _open(self, real: Any) -> Callable[..., Any]:
        def recorded(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
            full = self._inside(path, dir_fd) if flags & (os.O_CREAT | os.O_TRUNC) else None
            if full is None:
                return int(real(path, flags, mode, dir_fd=dir_fd))
            with self._lock:
                existed = os.path.lexists(full)
                descriptor = int(real(path, flags, mode, dir_fd=dir_fd))
                if not existed:
                    self.events.append(Link(*self._place(full), self._new_node(os.fstat(descriptor))))
                elif flags & os.O_TRUNC:
                    self.events.append(Resize(self._node(os.fstat(descriptor)), 0))
                return descriptor

        return recorded

    def _write(self, real: Any) -> Callable[..., Any]:
        def recorded(descriptor: int, data: Any) -> int:
            node = self._node_of(descriptor)
            if node is None:
                return int(real(descriptor, data))
            with self._lock:
                position = os.lseek(descriptor, 0, os.SEEK_CUR)
                written = int(real(descriptor, data))
                self.events.append(Write(node, position, bytes(data[:written])))
                return written

        return recorded

    def _pwrite(self, real: Any) -> Callable[..., Any]:
        def recorded(descriptor: int, data: Any, position: int) -> int:
            node = self._node_of(descriptor)
            with self._lock:
                written = int(real(descriptor, data, position))
                if node is not None:
                    self.events.append(Write(node, position, bytes(data[:written])))
                return written

        return recorded

    def _sendfile(self, real: Any) -> Callable[..., Any]:
        def recorded(target: int, source: int, offset: int, count: int) -> int:
            node = self._node_of(target)
            if node is None:
                return int(real(target, source, offset, count))
            with self._lock:
                position = os.lseek(target, 0, os.SEEK_CUR)
                sent = int(real(target, source, offset, count))
                self.events.append(Write(node, position, os.pread(source, sent, offset)))
                return sent

        return recorded

    def _ftruncate(self, real: Any) -> Callable[..., Any]:
        def recorded(descriptor: int, size: int) -> None:
            node = self._node_of(descriptor)
            with self._lock:
                real(descriptor, size)
                if node is not None:
                    self.events.append(Resize(node, size))

        return recorded

    def _truncate(self, real: Any) -> Callable[..., Any]:
        def recorded(path: Any, size: int) -> None:
            full = self._inside(path, None)
            with self._lock:
                real(path, size)
                if full is not None:
                    self.events.append(Resize(self._node(os.stat(full)), size))

        return recorded

    def _posix_fallocate(self, real: Any) -> Callable[..., Any]:
        def recorded(descriptor: int, offset: int, length: int) -> None:
            node = self._node_of(descriptor)
            with self._lock:
                before = os.fstat(descriptor).st_size
                real(descriptor, offset, length)
                if node is not None and offset + length > before:
                    self.events.append(Resize(node, offset + length))

        return recorded

    def _rename(self, real: Any) -> Callable[..., Any]:
        def recorded(source: Any, target: Any, **directories: Any) -> None:
            from_path, to_path = self._inside(source, None), self._inside(target, None)
            with self._lock:
                if from_path is None or to_path is None:
                    real(source, target, **directories)
                    return
                node = self._node(os.stat(from_path))
                real(source, target, **directories)
                self.events.append(Rename(*self._place(from_path), *self._place(to_path), node))

        return recorded

    def _unlink(self, real: Any) -> Callable[..., Any]:
        def recorded(path: Any, *, dir_fd: int | None = None) -> None:
            full = self._inside(path, dir_fd)
            with self._lock:
                place = None if full is None else self._place(full)
                real(path, dir_fd=dir_fd)
                if place is not None:
                    self.events.append(Unlink(*place))

        return recorded

    def _mkdir(self, real: Any) -> Callable[..., Any]:
        def recorded(path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
            full = self._inside(path, dir_fd)
            with self._lock:
                real(path, mode, dir_fd=dir_fd)
                if full is not None:
                    self.events.append(Link(*self._place(full), self._new_node(os.stat(full)), True))

        return recorded

    def _fsync(self, real: Any) -> Callable[..., Any]:
        def recorded(descriptor: int) -> None:
            node = self._node_of(descriptor)
            with self._lock:
                real(descriptor)
                if node is not None:
                    self.events.append(Sync(node))

        return recorded

    # -- mapped indexes

    def _stores(self, real: Any) -> Callable[..., Any]:
        def recorded(index: AbstractIndex, *entry: int) -> None:
            with self._lock:
                before = index.entries
                real(index, *entry)
                if index.entries > before:
                    position, size = before * index.ENTRY_SIZE, index.ENTRY_SIZE
                    stored = bytes(index._writable_map()[position : position + size])
                    self.events.append(Write(self._node(os.stat(index.path)), position, stored))

        return recorded

    # -- nodes

    def _inside(self, path: Any, dir_fd: int | None) -> str | None:
        full = os.fspath(path)
        if isinstance(full, bytes):
            full = os.fsdecode(full)
        if dir_fd is not None:
            full = os.path.join(os.readlink(f"/proc/self/fd/{dir_fd}"), full)
        return full if full.startswith(self._prefix) else None

    def _place(self, path: str) -> tuple[int, str]:
        """Return the directory's node and the name."""
        directory, name = os.path.split(path)
        return self._node(os.stat(directory)), name

    def _node_of(self, descriptor: int) -> int | None:
        status = os.fstat(descriptor)
        return self._nodes.get((status.st_dev, status.st_ino))

    def _node(self, status: os.stat_result) -> int:
        return self._nodes[(status.st_dev, status.st_ino)]

    def _new_node(self, status: os.stat_result) -> int:
        node = self._count
        self._count += 1
        self._nodes[(status.st_dev, status.st_ino)] = node
        return node

    def _scan(self, directory: str) -> int:
        node = self._new_node(os.stat(directory))
        names = self.tree.directories[node] = {}
        with os.scandir(directory) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.is_dir():
                    names[entry.name] = self._scan(entry.path)
                else:
                    names[entry.name] = child = self._new_node(os.stat(entry.path))
                    self.tree.files[child] = Path(entry.path).read_bytes()
        return node
