"""Transactions as JSON, for `barnabas transaction list`, `describe` and `find-hanging`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.clients.errors import RefusedError
from barnabas.commands.failures import CommandFailure
from barnabas.commands.output import print_line, print_table
from barnabas.explanation.wording import duration_text, time_text
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.clients.admin.admin import Admin


OPEN_STATES: Final = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort"})


async def described(
    admin: Admin, transactional_ids: Iterable[str], *, missing_ok: bool = False
) -> list[dict[str, Any]]:
    """Describe each id. Raises CommandFailure for an unknown one, unless `missing_ok` leaves it out."""
    found = []
    for transactional_id, each in (await admin.describe_transactions(transactional_ids)).items():
        if isinstance(each, RefusedError):
            if each.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise each
            if missing_ok:
                continue
            raise CommandFailure(
                f"the broker does not know transactional id {transactional_id!r}: `barnabas transaction list` shows"
                " the ids that it knows"
            )
        found.append(
            {
                "transactional_id": transactional_id,
                "state": each.state,
                "producer_id": each.producer_id,
                "producer_epoch": each.producer_epoch,
                "timeout_ms": each.timeout_ms,
                # The coordinator keeps the start time of an ended transaction.
                "start_time_ms": each.start_time_ms if each.state in OPEN_STATES and each.start_time_ms >= 0 else None,
                "partitions": [
                    {"topic": topic.name, "partition": partition}
                    for topic in sorted(each.topics, key=lambda topic: topic.name)
                    for partition in sorted(topic.partitions)
                ],
            }
        )
    return found


def print_description(description: dict[str, Any], age: str | None, *, is_first: bool) -> None:
    """Print one id for people. `age`: how long its transaction has been open, None if none is."""
    if not is_first:
        print_line("")
    print_line(f"transactional id {description['transactional_id']}, {description['state']}")
    print_line(
        f"producer id {description['producer_id']}, epoch {description['producer_epoch']}, "
        f"timeout {duration_text(description['timeout_ms'])}"
    )
    if age is not None:
        print_line(f"open for {age}, since {time_text(description['start_time_ms'])}")
    if description["partitions"]:
        print_line("")
        print_table(["topic", "partition"], [[each["topic"], each["partition"]] for each in description["partitions"]])


async def hanging(
    admin: Admin, topics: Sequence[str], numbers: Sequence[int], longer_than_ms: int
) -> list[dict[str, Any]]:
    """Find hanging transactions in these partitions of one topic, in these topics, or (neither) in all."""
    if topics:
        found = [await admin.describe_topic(name) for name in topics]
    else:
        found = await admin.list_topics()
    for topic in found:
        missing = set(numbers).difference(each.partition for each in topic.partitions)
        if missing:
            raise CommandFailure(f"topic {topic.name} has no partition {min(missing)}")
    partitions = [
        TopicPartition(topic.name, each.partition)
        for topic in found
        for each in topic.partitions
        if each.leader >= 0 and (not numbers or each.partition in numbers)
    ]
    hanging_there = await admin.find_hanging_transactions(partitions, longer_than_ms=longer_than_ms, missing_ok=True)
    return [
        {
            "topic": each.topic_partition.topic,
            "partition": each.topic_partition.partition,
            "producer_id": each.producer_id,
            "producer_epoch": each.producer_epoch,
            "coordinator_epoch": each.coordinator_epoch,
            "start_offset": each.start_offset,
            "last_timestamp": each.last_timestamp,
        }
        for each in hanging_there
    ]
