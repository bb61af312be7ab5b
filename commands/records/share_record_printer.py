"""The work of `barnabas consume --share-group`: prints this member's records and acknowledges them.

Lines are flushed before their records are acknowledged. So a record that is not in the output is not done; a crash
repeats lines and loses none. Records that were fetched and not printed are released at the end.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Final

from barnabas.clients.config import ShareConsumerConfig
from barnabas.clients.errors import BrokerConnectionError, LockLostError
from barnabas.clients.records import ShareRecord
from barnabas.clients.share.share_consumer import ShareConsumer
from barnabas.commands.output import print_note, standard_output
from barnabas.commands.progress import progress_bar
from barnabas.commands.records.record_lines import RecordFormat
from barnabas.commands.records.record_printer import Reading, ended_by_closed_pipe

SHARE_POLL_RECORDS: Final = 500
"""Printed and acknowledged together; all of them are locked meanwhile."""

_POLL_INTERVAL_MS: Final = 200


async def print_share_records(
    config: ShareConsumerConfig, reading: Reading, record_format: RecordFormat, acknowledge: str
) -> int:
    """Print records and return their number. Raises CommandFailure (timed out), ClosedPipeError."""
    loop = asyncio.get_running_loop()
    output = standard_output()
    written = 0
    with ended_by_closed_pipe():
        async with ShareConsumer(config) as queue:
            await queue.subscribe([reading.topic])
            last_arrival = loop.time()
            with progress_bar(
                "reading", total=reading.max_records, unit="records", wanted=not sys.stdout.isatty()
            ) as progress:
                while written != reading.max_records:
                    limit = reading.max_records and min(SHARE_POLL_RECORDS, reading.max_records - written)
                    records = await queue.poll(limit, _POLL_INTERVAL_MS)
                    now = loop.time()
                    if records:
                        last_arrival = now
                    else:
                        reading.ensure_not_idle(now - last_arrival, written)
                    output.write(record_format.lines(records))
                    output.flush()
                    await _settle(queue, records, acknowledge)
                    written += len(records)
                    progress.advance(len(records))
    return written


async def _settle(queue: ShareConsumer, records: list[ShareRecord], acknowledge: str) -> None:
    """Acknowledge printed records; note those that will be printed again, by this member or another one."""
    settle = {"accept": queue.ack, "release": queue.release, "reject": queue.reject}[acknowledge]
    try:
        await settle(*records)
    except (LockLostError, BrokerConnectionError) as error:
        print_note(f"records were written and not acknowledged, and will be delivered again: {error}")
