"""A mirror in a test: its state, and the stored bytes of what it has copied."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from barnabas import Admin, AdminConfig
from barnabas.protocol.messages.cluster.mirrors import MirrorDescription
from tests.support.daemon import Daemon

MIRROR = "m"
_WAIT_S = 30


@asynccontextmanager
async def admin_of(daemon: Daemon) -> AsyncIterator[Admin]:
    async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
        yield admin


async def until(copy: Daemon, condition: Callable[[MirrorDescription], bool]) -> MirrorDescription:
    """Wait for a state of the mirror."""
    async with admin_of(copy) as admin:
        deadline = time.monotonic() + _WAIT_S
        while True:
            found = await admin.mirrors.describe(MIRROR)
            if condition(found):
                return found
            assert time.monotonic() < deadline, found
            await asyncio.sleep(0.05)


def has_copied(total: int) -> Callable[[MirrorDescription], bool]:
    def condition(found: MirrorDescription) -> bool:
        return sum(each.offset for each in found.partitions) == total and all(
            each.state == "caught_up" for each in found.partitions
        )

    return condition


def problems_of(found: MirrorDescription) -> dict[str, str]:
    """Return the reasons, by topic."""
    return {each.topic: each.reason for each in found.problems}


def segments(data: Path, topic: str) -> dict[str, bytes]:
    """Return the bytes of a topic's segments in a log directory."""
    return {
        f"{path.parent.name}/{path.name}": path.read_bytes().rstrip(b"\0")
        for path in sorted(data.glob(f"{topic}-*/*.log"))
    }
