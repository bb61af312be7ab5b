"""Model of a disk with a volatile cache: what of a recording is durable, and what a power cut may do to the rest.

The model is stricter than any file system of Linux, so what holds in it holds on all of them:

- A sync of a file makes its bytes and its size durable, but not its name. A sync of a directory makes all changes of
  its entries durable that were made before.
- Of each page (4 KiB) that was changed since, any version may be there: the durable one, the newest, or one in between.
  A torn page has sectors (512 bytes) of two versions.
- The size may be any that the file had since its last sync. Where it is ahead of the data, there are zeros. Pages
  written after a truncation are not there without it.
- Each change of an entry since the directory's last sync is there or not, independent of the others. A rename is one
  change: the file has the old name or the new one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from tests.torture.crash_states.recording import ROOT, Event, Link, Note, Rename, Resize, Sync, Tree, Unlink, Write

PAGE_BYTES = 4096
SECTOR_BYTES = 512
_NO_PAGE = bytes(PAGE_BYTES)


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a file that is not durable yet."""

    node: int
    number: int


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a file that is not durable yet."""

    node: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A change of a directory that is not durable yet; `at` is the number of its event."""

    at: int


Part = Page | Size | Entry


class Torn(NamedTuple):
    """A page with the sectors in `mask` from version `newer` and the others from version `older`."""

    older: int
    newer: int
    mask: int


Choice = Mapping[Part, "int | Torn"]
"""Version of each part, 0 is the durable one. Parts that are not named have their newest version."""

Files = dict[str, "Content | None"]
"""The content of each file, by its path from the root; None for a directory."""


class Content(NamedTuple):
    """A file: its size, and the pages that are not zeros."""

    size: int
    pages: tuple[tuple[int, bytes], ...]


class _File:
    """The versions of one file since its last sync."""

    def __init__(self, data: bytes = b"") -> None:
        self.sizes: list[tuple[int, int]] = [(-1, len(data))]
        """(event, size), the durable one first."""
        self.pages: dict[int, list[tuple[int, bytes]]] = {}
        """(event, bytes) of each page, the durable version first."""
        self.cuts: list[int] = []
        """Events that made the file shorter."""
        for start in range(0, len(data), PAGE_BYTES):
            self.pages[start // PAGE_BYTES] = [(-1, data[start : start + PAGE_BYTES].ljust(PAGE_BYTES, b"\0"))]

    def write(self, at: int, position: int, data: bytes) -> None:
        taken = 0
        while taken < len(data):
            number, start = divmod(position + taken, PAGE_BYTES)
            part = data[taken : taken + PAGE_BYTES - start]
            versions = self.pages.setdefault(number, [(-1, _NO_PAGE)])
            page = versions[-1][1]
            versions.append((at, page[:start] + part + page[start + len(part) :]))
            taken += len(part)
        if position + len(data) > self.sizes[-1][1]:
            self.sizes.append((at, position + len(data)))

    def resize(self, at: int, size: int) -> None:
        if size == self.sizes[-1][1]:
            return
        if size < self.sizes[-1][1]:
            self.cuts.append(at)
            for number, versions in self.pages.items():
                kept = min(max(size - number * PAGE_BYTES, 0), PAGE_BYTES)
                if versions[-1][1][kept:] != _NO_PAGE[kept:]:
                    versions.append((at, versions[-1][1][:kept].ljust(PAGE_BYTES, b"\0")))
        self.sizes.append((at, size))

    def sync(self) -> None:
        self.sizes = [(-1, self.sizes[-1][1])]
        self.pages = {
            number: [(-1, versions[-1][1])] for number, versions in self.pages.items() if versions[-1][1] != _NO_PAGE
        }
        self.cuts = []

    def content(self, node: int, choice: Choice) -> Content:
        chosen = choice.get(Size(node), -1)
        assert isinstance(chosen, int)
        sized_at, size = self.sizes[chosen]
        cut_before = max((cut for cut in self.cuts if cut <= sized_at), default=-1)
        cut_after = min((cut for cut in self.cuts if cut > sized_at), default=1 << 62)
        pages = []
        for number, versions in self.pages.items():
            if number * PAGE_BYTES >= size:
                continue
            page = _version(versions, choice.get(Page(node, number), -1), cut_before, cut_after)
            page = page[: size - number * PAGE_BYTES]
            if page != _NO_PAGE[: len(page)]:
                pages.append((number, page))
        return Content(size, tuple(sorted(pages)))


def _version(versions: list[tuple[int, bytes]], chosen: int | Torn, cut_before: int, cut_after: int) -> bytes:
    allowed = [data for at, data in versions if at < cut_after]
    oldest = max((index for index, (at, _) in enumerate(versions) if at <= cut_before), default=0)
    if isinstance(chosen, Torn):
        older, newer = (allowed[min(max(each, oldest), len(allowed) - 1)] for each in (chosen.older, chosen.newer))
        return b"".join(
            (newer if chosen.mask >> sector & 1 else older)[sector * SECTOR_BYTES : (sector + 1) * SECTOR_BYTES]
            for sector in range(PAGE_BYTES // SECTOR_BYTES)
        )
    index = len(allowed) - 1 if chosen < 0 else min(max(chosen, oldest), len(allowed) - 1)
    return allowed[index]


class Disk:
    """The state after the events that were applied."""

    def __init__(self, tree: Tree) -> None:
        self._files = {node: _File(data) for node, data in tree.files.items()}
        self._entries = {node: dict(names) for node, names in tree.directories.items()}
        """The durable entries of each directory."""
        self._changes: list[tuple[int, Link | Unlink | Rename]] = []
        """Changes of entries that are not durable yet, in order."""
        self._is_directory = set(self._entries)

    def apply(self, at: int, event: Event) -> None:
        """Apply event number `at`."""
        match event:
            case Write(node, position, data):
                self._files[node].write(at, position, data)
            case Resize(node, size):
                self._files[node].resize(at, size)
            case Link(_, _, node, is_directory):
                if is_directory:
                    self._is_directory.add(node)
                    self._entries[node] = {}
                else:
                    self._files[node] = _File()
                self._changes.append((at, event))
            case Unlink() | Rename():
                self._changes.append((at, event))
            case Sync(node) if node in self._is_directory:
                self._sync_directory(node)
            case Sync(node):
                self._files[node].sync()
            case Note():
                pass

    def parts(self) -> dict[Part, int]:
        """Return the parts that are not durable, with the number of their versions, the durable one included.

        The part that changed last comes last. Files that no name can lead to any more are left out.
        """
        reachable = {node for names in self._entries.values() for node in names.values()}
        reachable.update(change.node for _, change in self._changes if not isinstance(change, Unlink))
        found: list[tuple[int, Part, int]] = [(at, Entry(at), 2) for at, _ in self._changes]
        for node in reachable - self._is_directory:
            file = self._files[node]
            if len(file.sizes) > 1:
                found.append((file.sizes[-1][0], Size(node), len(file.sizes)))
            for number, versions in file.pages.items():
                if len(versions) > 1:
                    found.append((versions[-1][0], Page(node, number), len(versions)))
        return {part: count for _, part, count in sorted(found, key=lambda each: (each[0], str(each[1])))}

    def files(self, choice: Choice) -> Files:
        """Return the files after a power cut that leaves these versions."""
        entries = {node: dict(names) for node, names in self._entries.items()}
        for at, change in self._changes:
            if choice.get(Entry(at), 1):
                _change(entries, change)
        return dict(self._walk(entries, choice, ROOT, ""))

    def _walk(
        self, entries: dict[int, dict[str, int]], choice: Choice, directory: int, prefix: str
    ) -> Iterator[tuple[str, Content | None]]:
        for name, node in entries[directory].items():
            if node in self._is_directory:
                yield f"{prefix}{name}", None
                yield from self._walk(entries, choice, node, f"{prefix}{name}/")
            else:
                yield f"{prefix}{name}", self._files[node].content(node, choice)

    def _sync_directory(self, node: int) -> None:
        kept = []
        for at, change in self._changes:
            # A rename between two directories stays open until both are synced, or rather: it does not occur.
            if change.directory == node:
                assert not isinstance(change, Rename) or change.to_directory == node
                _change(self._entries, change)
            else:
                kept.append((at, change))
        self._changes = kept


def _change(entries: dict[int, dict[str, int]], change: Link | Unlink | Rename) -> None:
    match change:
        case Link(directory, name, node, _):
            entries[directory][name] = node
        case Unlink(directory, name):
            entries[directory].pop(name, None)
        case Rename(directory, name, to_directory, to_name, node):
            if entries[directory].get(name) == node:
                del entries[directory][name]
            entries[to_directory][to_name] = node


def fingerprint(files: Files) -> bytes:
    """Return a digest of names and contents."""
    digest = blake2b(digest_size=16)
    for path in sorted(files):
        content = files[path]
        digest.update(f"{path}\0{-1 if content is None else content.size}\0".encode())
        for number, page in () if content is None else content.pages:
            digest.update(number.to_bytes(4, "big"))
            digest.update(page)
    return digest.digest()


def write_files(files: Files, root: Path) -> None:
    """Create the files below a new directory."""
    root.mkdir()
    for path in sorted(files):  # a directory comes before what it contains
        content = files[path]
        target = f"{root}/{path}"
        if content is None:
            os.mkdir(target)
            continue
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            os.ftruncate(descriptor, content.size)
            for number, page in content.pages:
                os.pwrite(descriptor, page, number * PAGE_BYTES)
        finally:
            os.close(descriptor)


def files_below(root: Path) -> Files:
    """Return the real files below a directory."""
    found: Files = {}
    for path in sorted(root.rglob("*")):
        name = os.fspath(path.relative_to(root))
        if path.is_dir():
            found[name] = None
            continue
        data = path.read_bytes()
        pages = [(start // PAGE_BYTES, data[start : start + PAGE_BYTES]) for start in range(0, len(data), PAGE_BYTES)]
        found[name] = Content(len(data), tuple(page for page in pages if page[1] != _NO_PAGE[: len(page[1])]))
    return found
