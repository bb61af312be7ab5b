"""The work of `barnabas transaction abort`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.commands.failures import CommandFailure
from barnabas.commands.transaction.descriptions import described
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.clients.admin.admin import Admin

ANY_AGE_MS = -60_000
"""Also transactions whose last record has a timestamp a little after this machine's clock."""


async def abort_id(admin: Admin, transactional_id: str) -> str:
    """Abort the id's open transaction, and return a sentence about it. Raises CommandFailure if none is open."""
    (found,) = await described(admin, [transactional_id])
    if found["state"] != "Ongoing":
        raise CommandFailure(f"transactional id {transactional_id} has no open transaction: it is {found['state']}")
    await admin.abort_transaction(transactional_id)
    return f"aborted the transaction of {transactional_id}, and fenced its producer {found['producer_id']}"


async def abort_hanging(admin: Admin, topic: str, number: int, producer_id: int | None) -> str:
    """Abort the hanging transaction of a partition, and return a sentence. Raises CommandFailure unless it is one."""
    partition = TopicPartition(topic, number)
    found = [
        each
        for each in await admin.find_hanging_transactions([partition], longer_than_ms=ANY_AGE_MS)
        if producer_id in (None, each.producer_id)
    ]
    if not found:
        raise CommandFailure(
            f"{partition} has no hanging transaction"
            + ("" if producer_id is None else f" of producer {producer_id}")
            + "; one that its coordinator knows is aborted by its transactional id (barnabas transaction list)"
        )
    if len(found) > 1:
        producers = ", ".join(str(each.producer_id) for each in found)
        raise CommandFailure(
            f"{partition} has {len(found)} hanging transactions, of producers {producers}:"
            " choose one with --producer-id"
        )
    (hanging,) = found
    await admin.abort_hanging_transaction(hanging)
    return f"aborted the transaction of producer {hanging.producer_id} in {partition}, offset {hanging.start_offset} on"
