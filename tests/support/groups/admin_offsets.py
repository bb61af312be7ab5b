"""Committed offsets as the Python client's Admin reads them."""

from __future__ import annotations

import asyncio

from barnabas import Admin, AdminConfig
from tests.support.daemon import Daemon


async def committed(daemon: Daemon, group: str) -> dict[int, int]:
    """Return the offsets of the group's one topic by partition."""
    async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
        return {each.partition: at.offset for each, at in (await admin.group_offsets(group)).items()}


async def until_committed(daemon: Daemon, group: str, records: int) -> None:
    """Wait until the committed offsets add up to `records`.

    Members that close one after the other need it: the commit of a member's close is refused while the group
    rebalances because another member has left.
    """
    async with asyncio.timeout(20):
        while sum((await committed(daemon, group)).values()) != records:
            await asyncio.sleep(0.01)
