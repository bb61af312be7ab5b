"""Reading of files whose paths clients may alter: only regular files, and only up to a size.

A FIFO would block the thread that applies the change, and a device such as /dev/zero would fill the memory.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_regular_file(path: Path, max_bytes: int) -> bytes:
    """Return a file's content. Raises OSError, also if it is not a regular file or larger than `max_bytes`."""
    # O_NONBLOCK: the open of a FIFO without a writer would wait for one. Regular files ignore it.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            problem = "Is a directory" if stat.S_ISDIR(mode) else "Not a regular file"
            raise OSError(errno.EINVAL, problem, str(path))
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise OSError(errno.EFBIG, f"Larger than {max_bytes} bytes", str(path))
    return data
