"""The facts about open transactions, asked from a running broker."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from barnabas.clients.errors import RefusedError
from barnabas.commands.failures import CommandFailure
from barnabas.commands.transaction.descriptions import described
from barnabas.explanation.transaction_findings import (
    ExplainedTransactions,
    KnownTransaction,
    OpenInPartition,
    PartitionFacts,
    explain_partition,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.list_offsets import LATEST_TIMESTAMP
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.clients.admin.admin import Admin

_READ_UNCOMMITTED, _READ_COMMITTED = 0, 1


async def explain_id(admin: Admin, transactional_id: str) -> ExplainedTransactions:
    """Explain one transactional id. Raises CommandFailure for an unknown one, RefusedError."""
    known = [_known(each) for each in await described(admin, [transactional_id])]
    return await _explained(admin, known, _partitions_of(known))


async def explain_producer(admin: Admin, producer_id: int) -> ExplainedTransactions:
    """Explain the open transaction of a producer id, also one that no coordinator knows. Raises CommandFailure."""
    listed = await admin.list_transactions(producer_ids=[producer_id])
    known = [
        _known(each) for each in await described(admin, [each.transactional_id for each in listed], missing_ok=True)
    ]
    everywhere = await admin.open_transactions(await _all_partitions(admin), missing_ok=True)
    partitions = {each.topic_partition for each in everywhere if each.producer_id == producer_id}
    if not known and not partitions:
        raise CommandFailure(f"no transactional id and no open transaction has producer id {producer_id}")
    return await _explained(admin, known, partitions | _partitions_of(known))


async def explain_partitions(admin: Admin, partitions: Iterable[TopicPartition]) -> ExplainedTransactions:
    """Explain the last stable offset of these partitions. Raises RefusedError for an unknown one."""
    return await _explained(admin, [], partitions)


async def explain_readable(admin: Admin, partition: TopicPartition) -> ExplainedTransactions | None:
    """Explain one partition; return None if the client may describe the topic and not READ it. Raises RefusedError."""
    try:
        return await explain_partitions(admin, [partition])
    except RefusedError as error:
        if error.code is not ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise
        return None


async def explain_all(admin: Admin) -> ExplainedTransactions:
    """Explain all partitions with an open transaction."""
    found = await admin.open_transactions(await _all_partitions(admin), missing_ok=True)
    return await _explained(admin, [], {each.topic_partition for each in found})


async def _all_partitions(admin: Admin) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, each.partition)
        for topic in await admin.list_topics()
        for each in topic.partitions
        if each.leader >= 0
    ]


async def _explained(
    admin: Admin, asked: Sequence[KnownTransaction], partitions: Iterable[TopicPartition]
) -> ExplainedTransactions:
    wanted = sorted(set(partitions))
    found = await admin.open_transactions(wanted)
    known = {each.transactional_id: each for each in asked}
    if missing := {each.producer_id for each in found} - {each.producer_id for each in asked}:
        listed = await admin.list_transactions(producer_ids=sorted(missing))
        ids = [each.transactional_id for each in listed if each.transactional_id not in known]
        known |= {each["transactional_id"]: _known(each) for each in await described(admin, ids, missing_ok=True)}
    # A transaction that ended after the first look is not known to its coordinator, and does not hang.
    still_open = {(each.topic_partition, each.start_offset) for each in await admin.open_transactions(wanted)}
    stable = await _latest(admin, wanted, isolation=_READ_COMMITTED)
    ends = await _latest(admin, wanted, isolation=_READ_UNCOMMITTED)
    now_ms = time.time_ns() // 1_000_000
    findings = []
    for partition in wanted:
        transactions = tuple(
            OpenInPartition(each.producer_id, each.producer_epoch, each.start_offset, each.last_timestamp)
            for each in found
            if each.topic_partition == partition and (partition, each.start_offset) in still_open
        )
        facts = PartitionFacts(partition, ends[partition], stable[partition], transactions)
        findings.append(explain_partition(facts, known.values(), now_ms=now_ms))
    return ExplainedTransactions(now_ms, tuple(asked), tuple(findings))


async def _latest(admin: Admin, partitions: list[TopicPartition], *, isolation: int) -> dict[TopicPartition, int]:
    if not partitions:
        return {}
    found = await admin.list_offsets(dict.fromkeys(partitions, LATEST_TIMESTAMP), isolation=isolation)
    return {partition: each.offset for partition, each in found.items()}


def _partitions_of(known: Iterable[KnownTransaction]) -> set[TopicPartition]:
    return {partition for each in known for partition in each.partitions}


def _known(description: dict[str, Any]) -> KnownTransaction:
    return KnownTransaction(
        description["transactional_id"],
        description["state"],
        description["producer_id"],
        description["producer_epoch"],
        description["timeout_ms"],
        description["start_time_ms"],
        frozenset(TopicPartition(each["topic"], each["partition"]) for each in description["partitions"]),
    )
