"""Failpoints: named places where a test can kill the process or make a system call fail.

    BARNABAS_TEST_FAILPOINTS="replace.renamed=kill@3,cleaner.written=enospc"     name=action[@n], the n-th time only

`kill` ends the process by SIGKILL, as kill -9 would; `eio` and `enospc` raise that OSError. A test in the same process
arms any callable. Unarmed, `failpoint` costs one look at two empty containers, so it is called only beside system
calls, and on the path of a request only at the end of a transaction, which makes several changes. A new step of a
segment swap gets a failpoint; test_replacement_crash.py then finds it by itself. Source: the idea is bbolt's gofail.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

VARIABLE = "BARNABAS_TEST_FAILPOINTS"
Action = Callable[[str], object]

_armed: dict[str, Action] = {}
_observers: list[Action] = []


def failpoint(name: str) -> None:
    """Run the action that is armed for this point, if any. Raises OSError if that is the action."""
    if _armed or _observers:
        for observer in _observers:
            observer(name)
        if (action := _armed.get(name)) is not None:
            action(name)


def any_armed() -> bool:
    """Return whether a test watches failpoints: compiled code has none, so callers leave its work to Python."""
    return bool(_armed or _observers)


@contextmanager
def armed(name: str, action: Action) -> Iterator[None]:
    """Run `action(name)` each time the failpoint is reached inside the with block."""
    _armed[name] = action
    try:
        yield
    finally:
        del _armed[name]


@contextmanager
def observed(observer: Action) -> Iterator[None]:
    """Run `observer(name)` at every failpoint reached inside the with block."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


def arm_from(setting: str) -> None:
    """Arm failpoints from a value of the environment variable. Raises ValueError if it is malformed."""
    for item in filter(None, setting.split(",")):
        name, separator, rest = item.partition("=")
        kind, _, count = rest.partition("@")
        if not separator or kind not in _ACTIONS or (count and not count.isdigit()):
            raise ValueError(f"{VARIABLE}: {item} is not name=action[@count], actions: {', '.join(_ACTIONS)}")
        _armed[name] = _at(int(count or 1), _ACTIONS[kind])


def _at(count: int, action: Action) -> Action:
    left = count

    def counted(name: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            action(name)

    return counted


def kill(name: str) -> None:
    """Kill the process; no handler or finally block runs."""
    os.kill(os.getpid(), signal.SIGKILL)


def no_space(name: str) -> None:
    """Raise a full disk's OSError."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)


def io_error(name: str) -> None:
    """Raise a failed disk's OSError."""
    raise OSError(errno.EIO, os.strerror(errno.EIO), name)


_ACTIONS: dict[str, Action] = {"kill": kill, "enospc": no_space, "eio": io_error}

arm_from(os.environ.get(VARIABLE, ""))
