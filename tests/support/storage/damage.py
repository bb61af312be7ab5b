"""One seeded damage to log directories, like that of a bad disk or a careless copy, to one file.

    flip       1 to 3 bytes change
    cut        the file is truncated, in half of the cases at the end of a batch
    extend     zeros, noise or a piece of the file itself are appended
    blank      a range is zeroed, like a page that was never written
    swap       two ranges of the file, or the contents of two files of one kind, change places
    replace    the file gets the content of another one of its kind, or none
    delete     the file is deleted
    move       a directory of the metadata log becomes a file, or the file becomes a directory

The same seed does the same to the same bytes. Partitions' records are not damaged: tests/storage covers them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

METADATA = "__cluster_metadata-0"
_RECORDS = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
_OVERHEAD = 12
_LONGEST_STRETCH = 4096


class Damage(NamedTuple):
    """A description for failure messages. `path` is relative to the directory that holds the log.dirs."""

    kind: str
    path: str
    detail: str


def damage(root: Path, seed: int) -> Damage:
    """Do one damage to the metadata of the log directories below `root`."""
    chosen = random.Random(seed)
    files = damageable(root)
    weights = [_weight(path) for path in files]
    path = chosen.choices(files, weights)[0]
    kind = chosen.choice(list(_KINDS))
    detail = _KINDS[kind](path, files, chosen)
    return Damage(kind, str(path.relative_to(root)), detail)


def damageable(root: Path) -> list[Path]:
    """Return the files that may be damaged, sorted: all but partitions' records and their indexes."""
    found = []
    for path in sorted(root.rglob("*")):
        is_of_partition = path.suffix in _RECORDS and path.parent.name != METADATA
        if path.is_file() and path.name != ".lock" and not is_of_partition:
            found.append(path)
    return found


def batch_ends(data: bytes) -> list[int]:
    """Return the end positions of the batches at the front of `data`, by their lengths alone."""
    ends, position = [0], 0
    while position + _OVERHEAD <= len(data):
        size = _OVERHEAD + int.from_bytes(data[position + 8 : position + _OVERHEAD], "big")
        if position + size > len(data) or size == _OVERHEAD:
            break
        position += size
        ends.append(position)
    return ends


def _weight(path: Path) -> float:
    if path.suffix in (".log", ".checkpoint"):
        return 6
    return 2 if path.parent.name == METADATA or path.name == "meta.properties" else 0.7


def _flip(path: Path, files: Sequence[Path], chosen: random.Random) -> str:
    data = bytearray(path.read_bytes())
    positions = [_position(data, chosen) for _ in range(chosen.randint(1, 3))] if data else []
    for position in positions:
        data[position] ^= chosen.choice((1, 2, 4, 8, 16, 32, 64, 128, chosen.randint(1, 255)))
    path.write_bytes(data)
    return f"at {positions}"


def _cut(path: Path, files: Sequence[Path], chosen: random.Random) -> str:
    data = path.read_bytes()
    size = chosen.choice(batch_ends(data)) if chosen.random() < 0.5 else _position(data, chosen)
    path.write_bytes(data[:size])
    return f"to {size} of {len(data)} bytes"


def _extend(path: Path, files: Sequence[Path], chosen: random.Random) -> str:
    data = path.read_bytes()
    count = chosen.choice((1, 7, 61, 512, 4096))
    start = _position(data, chosen)
    ends = batch_ends(data)
    what, more = chosen.choice(
        (
            ("zeros", bytes(count)),
            ("noise", chosen.randbytes(count)),
            ("a piece of itself", data[start : start + count]),
            ("its last batch", data[ends[-2] : ends[-1]] if len(ends) > 1 else data),
        )
    )
    path.write_bytes(data + more)
    return f"by {what}, {len(more)} bytes"


def _blank(path: Path, files: Sequence[Path], chosen: random.Random) -> str:
    data = bytearray(path.read_bytes())
    start = _position(data, chosen)
    end = min(len(data), start + chosen.randint(1, _LONGEST_STRETCH))
    data[start:end] = bytes(end - start)
    path.write_bytes(data)
    return f"from {start} to {end}"


def _swap(path: Path, files: Sequence[Path], chosen: random.Random) -> str:
    alike = [other for other in files if other != path and _kind(other) == _kind(path)]
    data = path.read_bytes()
    if alike and chosen.random() < 0.5:
        other = chosen.choice(alike)
        path.write_bytes(other.read_bytes())
        other.write_bytes(data)
        return f"with {other.parent.name}/{other.name}"
    ends = batch_ends(data)
    if len(ends) > 3:
        first, second = sorted(chosen.sample(range(len(ends) - 1), 2))
        one, two = data[ends[first] : ends[first + 1]], data[ends[second] : ends[second + 1]]
        path.write_bytes(
            data[: ends[first]] + two + data[ends[first + 1] : ends[second]] + one + data[ends[second + 1] :]
        )
        return f"batches {first} and {second}"
    middle = len(data) // 2
    path.write_bytes(data[middle:] + data[:middle])
    return "its halves"


def _replace(path: Path, files: Sequence[Path], chosen: random.Random) -> str:
    alike = [other for other in files if other != path and _kind(other) == _kind(path)]
    if not alike or chosen.random() < 0.3:
        path.write_bytes(b"")
        return "by nothing"
    other = chosen.choice(alike)
    path.write_bytes(other.read_bytes())
    return f"by {other.parent.name}/{other.name}"


def _delete(path: Path, files: Sequence[Path], chosen: random.Random) -> str:
    path.unlink()
    return ""


def _move(path: Path, files: Sequence[Path], chosen: random.Random) -> str:
    if path.parent.name == METADATA and chosen.random() < 0.2:
        path.parent.rename(path.parent.with_name("set-aside"))
        (path.parent.parent / "set-aside").rename(path.parent.parent.parent / "set-aside")
        path.parent.write_bytes(b"")
        return "its directory is an empty file"
    path.unlink()
    path.mkdir()
    return "it is a directory"


def _kind(path: Path) -> str:
    """Return the kind of files that may change places.

    Snapshots are only exchanged with those of the same name: a whole snapshot under another name is undetectable.
    """
    return path.name if path.suffix in ("", ".checkpoint") else path.suffix


def _position(data: bytes | bytearray, chosen: random.Random) -> int:
    """Return a position in `data`, half of the time in the last quarter, where the newest records are."""
    if not data:
        return 0
    start = len(data) * 3 // 4 if chosen.random() < 0.5 else 0
    return chosen.randrange(start, len(data))


_KINDS: dict[str, Callable[[Path, Sequence[Path], random.Random], str]] = {
    "flip": _flip,
    "cut": _cut,
    "extend": _extend,
    "blank": _blank,
    "swap": _swap,
    "replace": _replace,
    "delete": _delete,
    "move": _move,
}
