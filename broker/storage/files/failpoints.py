"""Named places at which a test may stop the process or make a system call fail.

    BARNABAS_TEST_FAILPOINTS="replace.renamed=kill@3,cleaner.written=enospc"     name=action[@which time, from 1]

`kill` ends the process by SIGKILL, as kill -9 would; `eio` and `enospc` raise that OSError. A test in the
same process arms any callable. When nothing is armed, `reach` is one look at an empty dictionary, so it stands in code
that does a system call anyway, never in the path of a request. Source: the idea is bbolt's gofail.
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


def reach(name: str) -> None:
    """The program is at this point. Raises OSError where that was armed."""
    if _armed or _observers:
        for observer in _observers:
            observer(name)
        if (action := _armed.get(name)) is not None:
            action(name)


@contextmanager
def armed(name: str, action: Action) -> Iterator[None]:
    """`action(name)` runs each time that the point is reached inside of the with block."""
    _armed[name] = action
    try:
        yield
    finally:
        del _armed[name]


@contextmanager
def observed(observer: Action) -> Iterator[None]:
    """`observer(name)` runs at every point that is reached inside of the with block."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


def arm_from(setting: str) -> None:
    """Arm what the environment variable says. Raises ValueError for what it cannot mean."""
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
    """End the process: nothing of it runs any more."""
    os.kill(os.getpid(), signal.SIGKILL)


def no_space(name: str) -> None:
    """As a full disk."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)


def io_error(name: str) -> None:
    """As a failed disk."""
    raise OSError(errno.EIO, os.strerror(errno.EIO), name)


_ACTIONS: dict[str, Action] = {"kill": kill, "enospc": no_space, "eio": io_error}

arm_from(os.environ.get(VARIABLE, ""))
