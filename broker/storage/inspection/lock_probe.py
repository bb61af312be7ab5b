"""Detection of a broker that uses a data directory, without taking the lock.

Trying the lock would hold it for a moment, and a broker that starts at that moment would be refused. F_GETLK only
queries: it returns the process with the POSIX record lock, which Apache Kafka and Barnabas both take (see
directories.lock).
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
    """Return the id of the process that has locked the directory, or None. Raises OSError.

    Returns 0 for a process in another pid namespace.
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
