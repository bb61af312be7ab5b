"""The arbiter: a command that decides whether a standby takes over from an active broker that does not answer.

Two nodes cannot know which of them is cut off. A third party can (a cluster manager, a witness, a fencing device), and
`standby.arbiter.command` asks it. Exit code 0 means: the active broker is stopped or cut off from its clients for good,
take over. Any other code, and no answer within TIMEOUT_SECONDS, means no.
"""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from barnabas.broker.standby.replica import Replica

logger = logging.getLogger(__name__)

TIMEOUT_SECONDS: Final = 30.0
_INTERVAL_SECONDS: Final = 0.1
_NOTE_BYTES: Final = 500


class Arbiter:
    """Asks the command while the active broker cannot be reached. Event loop only."""

    def __init__(self, command: Sequence[str], after_seconds: float, peer: str) -> None:
        """`after_seconds`: how long the broker at `peer` must have been silent; also the time between two questions."""
        self._command = command
        self._after_seconds = after_seconds
        self._peer = peer

    async def watch(self, replica: Replica, promote: Callable[[], asyncio.Task[bool]]) -> None:
        """Call `promote` when the active broker is lost and the command agrees, until its task returns True.

        The task goes on when this one is cancelled.
        """
        loop = asyncio.get_running_loop()
        heard = loop.time()
        while True:
            await asyncio.sleep(_INTERVAL_SECONDS)
            if not (replica.is_lost and replica.is_complete_once):
                heard = loop.time()
            elif loop.time() - heard >= self._after_seconds:
                if await self._agrees(replica) and replica.is_lost:
                    promotion = promote()
                    await asyncio.wait([promotion])
                    if promotion.result():
                        return
                heard = loop.time()

    async def _agrees(self, replica: Replica) -> bool:
        lag = sum(each.lag_records or 0 for each in replica.partitions())
        facts = {
            "BARNABAS_ARBITER_ACTIVE": self._peer,
            "BARNABAS_ARBITER_SWITCH_NUMBER": str(replica.number + 1),
            "BARNABAS_ARBITER_LAG_RECORDS": str(lag),
        }
        try:
            code, note = await _run(self._command, {**os.environ, **facts})
        except OSError as error:
            logger.error("the arbiter cannot be asked, not taking over: %s", error)
            return False
        if code == 0:
            logger.warning("the arbiter agrees: taking over from %s, known lag of %d records", self._peer, lag)
        elif code is None:
            logger.warning("the arbiter did not answer within %.0f s: not taking over", TIMEOUT_SECONDS)
        else:
            logger.warning("the arbiter refuses, code=%d: not taking over%s", code, note)
        return code == 0


async def _run(command: Sequence[str], environ: Mapping[str, str]) -> tuple[int | None, str]:
    """Return the exit code, None after TIMEOUT_SECONDS, and the end of what the command printed. Raises OSError."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=environ,
    )
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            printed, _ = await process.communicate()
    except TimeoutError:
        return None, ""
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    note = printed[-_NOTE_BYTES:].decode(errors="replace").strip()
    return process.returncode, f": {note!r}" if note else ""
