"""Whether a broker has a data directory now, found out without taking its lock.

To try the lock would be to hold it for a moment, in which a broker that starts would be refused. F_GETLK only asks: it
names the process that has the POSIX record lock, which both Apache Kafka and Barnabas take (see directory_lock).
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from struct import Struct

from barnabas.broker.storage.directories.lock import LOCK_FILE

_FLOCK = Struct("@hhqqi4x")  # Linux's struct flock: type, whence, start, length, pid

assert _FLOCK.size == 32


def lock_holder(log_dir: Path) -> int | None:
    """The id of the process that has the directory, or None. Raises OSError.

    0 stands for a process that cannot be named from here (another pid namespace).
    """
    try:
        descriptor = os.open(log_dir / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        question = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        lock_type, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, question))
    finally:
        os.close(descriptor)
    return None if lock_type == fcntl.F_UNLCK else max(pid, 0)
