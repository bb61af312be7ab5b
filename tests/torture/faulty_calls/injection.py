"""Faults of one call: the calls of a scenario are numbered, and one of them goes wrong.

    EIO, ENOSPC, EDQUOT, EMFILE   it fails with this error, and did nothing
    short                         a write writes half of its bytes, which is no error
    short+ENOSPC                  and the next one fails: the disk is full
    wrong                         a read returns a flipped bit, once

A failed sync loses what it should have written: later syncs of that file succeed and write nothing, as on Linux.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tests.torture.crash_states.recording import Recorder, Sync

SHORTAGES = ("ENOSPC", "EDQUOT", "EMFILE", "short+ENOSPC")
"""What takes no directory offline: it works again as soon as there is room."""
SYNCS = ("fsync", "fdatasync")
"""Whatever error they return: what was to be written may be lost."""
CHANGES = (
    *("open", "write", "pwrite", "sendfile", "ftruncate", "truncate", "posix_fallocate"),
    *("rename", "replace", "unlink", "mkdir", *SYNCS),
)
WRITES = ("write", "pwrite", "sendfile")
READS = ("pread", "preadv")
_COUNTED = {"EMFILE": ("open",), "short": WRITES, "short+ENOSPC": WRITES, "wrong": READS}
"""Calls that a kind of fault is for; all changes for the others."""
KINDS = ("EIO", "ENOSPC", "EDQUOT", *_COUNTED)
_BY_PATH = ("open", "truncate", "rename", "replace", "unlink", "mkdir")


class Fault(NamedTuple):
    """The call with this number, counted in one log directory among those of its kind, goes wrong."""

    scenario: str
    directory: str
    call: int
    kind: str

    def __str__(self) -> str:
        return "/".join(map(str, self))


def parse_fault(text: str) -> Fault:
    """Return the fault in a text form. Raises ValueError."""
    scenario, directory, call, kind = text.split("/")
    return Fault(scenario, directory, int(call), kind)


class FaultyRecorder(Recorder):
    """A recorder in which one call goes wrong while `is_armed`."""

    def __init__(self, root: Path, fault: Fault) -> None:
        super().__init__(root)
        self.calls = 0
        """Calls so far, in the fault's directory."""
        self.failed: str | None = None
        """The call that went wrong, with its path."""
        self.is_shortage = False
        """Whether the fault was one that takes no directory offline."""
        self.is_armed = False
        self._fault = fault
        self._lost: set[int] = set()
        self._rest_fails = False

    def __enter__(self) -> FaultyRecorder:
        super().__enter__()
        for name in (*CHANGES, *READS):
            self._replace(os, name, partial(self._failing, name))
        return self

    def _failing(self, name: str, real: Any) -> Callable[..., Any]:
        counted = _COUNTED.get(self._fault.kind, CHANGES)

        def call(target: Any, *arguments: Any, **named: Any) -> Any:
            path = str(os.fspath(target) if name in _BY_PATH else os.readlink(f"/proc/self/fd/{target}"))
            if not self.is_armed or not path.startswith(f"{self.root}/{self._fault.directory}/"):
                return real(target, *arguments, **named)
            if self._rest_fails and name in WRITES:
                self._rest_fails = False
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            is_due = name in counted and self.calls == self._fault.call
            self.calls += name in counted
            if is_due:
                self.failed = f"{name} {path}"
                return self._go_wrong(name, real, target, *arguments, **named)
            before = len(self.events)
            result = real(target, *arguments, **named)
            if name in SYNCS and self.events[before:] and self._is_lost(self.events[-1]):
                self.events.pop()
            return result

        return call

    def _go_wrong(self, name: str, real: Any, target: Any, *arguments: Any, **named: Any) -> Any:
        kind = self._fault.kind
        creates = name != "open" or bool(arguments[0] & os.O_CREAT) or kind == "EMFILE"
        self.is_shortage = kind in SHORTAGES and name not in SYNCS and creates
        match kind:
            case "wrong":
                return _flip_a_bit(name, real(target, *arguments), arguments)
            case "short" | "short+ENOSPC":
                self._rest_fails = kind != "short"
                return _write_half(name, real, target, *arguments)
        if name in SYNCS and (node := self._node_of(target)) is not None:
            self._lost.add(node)
        code = getattr(errno, kind)
        raise OSError(code, os.strerror(code), self.failed)

    def _is_lost(self, event: object) -> bool:
        return isinstance(event, Sync) and event.node in self._lost


def _write_half(name: str, real: Any, target: Any, *arguments: Any) -> Any:
    if name == "sendfile":
        source, offset, count = arguments
        return real(target, source, offset, max(count // 2, 1))
    data = memoryview(arguments[0])
    return real(target, data[: max(len(data) // 2, 1)], *arguments[1:])


def _flip_a_bit(name: str, read: Any, arguments: tuple[Any, ...]) -> Any:
    """Flip a bit of what was read.

    Not in the middle, where a batch may begin here: its base offset is not covered by the CRC, see docs/reliability.md.
    """
    if name == "pread":
        data = bytearray(read)
        if data:
            data[len(data) * 3 // 4] ^= 0x10
        return bytes(data)
    if read:
        arguments[0][0][read * 3 // 4] ^= 0x10
    return read
