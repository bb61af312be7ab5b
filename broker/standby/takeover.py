"""The standby's side of a planned switch: freeze the active broker, copy its last bytes, retire it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Final

from barnabas.broker.standby.active_broker import ActiveBroker
from barnabas.clients.errors import ClientError
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.broker.standby.replica import Replica
    from barnabas.clients.config import ClientConfig
    from barnabas.protocol.messages.cluster.standby import StandbyResponse

logger = logging.getLogger(__name__)

FREEZE_MS: Final = 30_000
CATCH_UP_SECONDS: Final = 20.0
"""Less than FREEZE_MS: the active broker must still be frozen when it is retired."""

_POLL_SECONDS: Final = 0.005


class TakeoverError(Exception):
    """The standby does not take over; the message says why."""


async def hand_over(replica: Replica, client: ClientConfig, number: int, *, ensure_current: Callable[[], None]) -> None:
    """Return once the active broker has stopped accepting writes for good and everything is copied.

    `ensure_current` raises TakeoverError if `replica` is no longer the copy in use. Raises TakeoverError; the active
    broker then goes on.
    """
    try:
        active = await ActiveBroker.connect(client)
    except ClientError as error:
        raise TakeoverError(
            f"the active broker cannot be reached for a planned switch: {error}; if it is lost, promote without "
            "--planned"
        ) from error
    try:
        target = await active.freeze(number, FREEZE_MS)
        try:
            await _catch_up(replica, target)
            ensure_current()
        except BaseException:
            with contextlib.suppress(ClientError):  # it thaws by itself
                await active.unfreeze()
            raise
        try:
            await active.retire(number)
        except ClientError as error:
            raise TakeoverError(
                f"the active broker did not confirm that it has handed over: {error}. Either it stops, then make sure "
                f"that it is not started again and promote without --planned: nothing is missing; or it accepts writes "
                f"again after {FREEZE_MS // 1000} s, then try again"
            ) from error
    except ClientError as error:
        raise TakeoverError(f"the planned switch is given up: {error}") from error
    finally:
        active.close()


async def _catch_up(replica: Replica, target: StandbyResponse) -> None:
    ends = {TopicPartition(each.topic, each.partition): each.end_offset for each in target.ends}
    loop = asyncio.get_running_loop()
    deadline = loop.time() + CATCH_UP_SECONDS
    while True:
        missing = _missing(replica, target.end_offset, ends)
        if missing is None:
            return
        if loop.time() > deadline:
            raise TakeoverError(f"the planned switch is given up: within {CATCH_UP_SECONDS:.0f} s {missing}")
        await asyncio.sleep(_POLL_SECONDS)


def _missing(replica: Replica, metadata_end: int, ends: dict[TopicPartition, int]) -> str | None:
    """Return the first thing that is not copied, None if nothing is missing."""
    if replica.applied_offset < metadata_end:
        return f"metadata up to offset {metadata_end} was not copied (copied: {replica.applied_offset})"
    if not replica.is_compared:
        return "not all records here were compared with the active broker's"
    found = replica.ends()
    for key, end in ends.items():
        if found.get(key, -1) != end:  # a longer copy has a tail that the active broker does not have
            return f"{key} was not copied up to offset {end} (the copy ends at {found.get(key, 0)})"
    return None
