"""Descriptions of mirrors: JSON objects for programs, text and a table for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from barnabas.commands.output import print_line, print_table
from barnabas.explanation.wording import counted, time_text

if TYPE_CHECKING:
    from barnabas.protocol.messages.cluster.mirrors import MirrorDescription, PromotedPartition


def as_object(mirror: MirrorDescription) -> dict[str, Any]:
    """Return a mirror as a JSON object."""
    return {
        "name": mirror.name,
        "state": mirror.state,
        "error": mirror.error,
        "definition": mirror.fields,
        "topics": [{"topic": each.topic, "state": each.state, "source_id": each.source_id} for each in mirror.topics],
        "partitions": [
            {
                "topic": each.topic,
                "partition": each.partition,
                "state": each.state,
                "offset": _known(each.offset),
                "source_offset": _known(each.source_offset),
                "lag_records": each.lag_records,
                "lag_bytes": each.lag_bytes,
                "lag_seconds": each.lag_seconds,
                "error": each.error,
            }
            for each in mirror.partitions
        ],
        "problems": [{"topic": each.topic, "reason": each.reason} for each in mirror.problems],
        "promoted": [partition_object(each) for each in mirror.promoted],
    }


def partition_object(partition: PromotedPartition) -> dict[str, Any]:
    """Return a promoted partition as a JSON object."""
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "copied_end": partition.copied_end,
        "source_epoch": partition.source_epoch,
        "end": partition.end,
        "leader_epoch": partition.leader_epoch,
        "committed": partition.committed,
        "aborted": partition.aborted,
        "cut": partition.cut,
    }


def lag_of(mirror: MirrorDescription) -> tuple[int | None, str | None]:
    """Return the sum of the lags in records and the greatest lag in seconds, of the partitions whose lag is known."""
    records = [each.lag_records for each in mirror.partitions if each.lag_records is not None]
    seconds = [each.lag_seconds for each in mirror.partitions if each.lag_seconds is not None]
    return (sum(records) if records else None, f"{max(seconds):.1f}" if seconds else None)


def print_description(mirror: MirrorDescription) -> None:
    """Print a mirror: definition, state, problems, and a table of its partitions."""
    fields = mirror.fields
    print_line(f"mirror {mirror.name}: {mirror.state}")
    if mirror.error is not None:
        print_line(f"  error: {mirror.error}")
    if fields:
        print_line(f"  source: {', '.join(fields['bootstrap'])}")
        print_line(f"  topics: {', '.join(fields['topics'])}")
        if fields.get("groups"):
            print_line(f"  groups: {', '.join(fields['groups'])}")
        if fields.get("command_config"):
            print_line(f"  client properties: {fields['command_config']}")
        start = fields["start"]
        print_line(f"  start: {time_text(int(start)) if start.isdigit() else start}")
        print_line(f"  configs: {'as at the source' if fields.get('follow_configs') else 'of this cluster'}")
        if fields.get("max_bytes_per_second"):
            print_line(f"  limit: {fields['max_bytes_per_second']:,} bytes per second")
    explained = {each.topic for each in mirror.problems}
    for each in mirror.topics:
        if each.state != "mirrored" and each.topic not in explained:
            print_line(f"  topic {each.topic}: {each.state.replace('_', ' ')}")
    for problem in mirror.problems:
        print_line(f"  topic {problem.topic}: {problem.reason}")
    for partition in mirror.partitions:
        if partition.error is not None:
            print_line(f"  {partition.topic}-{partition.partition}: {partition.error}")
    if not mirror.partitions:
        return
    print_line("")
    print_table(
        ["topic", "partition", "state", "offset", "source offset", "lag records", "lag bytes", "lag seconds"],
        [
            [
                each.topic,
                each.partition,
                each.state,
                _known(each.offset),
                _known(each.source_offset),
                each.lag_records,
                each.lag_bytes,
                None if each.lag_seconds is None else f"{each.lag_seconds:.1f}",
            ]
            for each in mirror.partitions
        ],
    )


def counted_promotion(partitions: Sequence[PromotedPartition]) -> dict[str, int]:
    """Return how many transactions a promotion has settled, and how many offsets it has dropped."""
    return {
        "committed": sum(each.committed for each in partitions),
        "aborted": sum(each.aborted for each in partitions),
        "cut": sum(each.cut for each in partitions),
    }


def print_promotion(mirror: MirrorDescription, counts: Mapping[str, int]) -> None:
    """Print what a promotion has done: a line of totals, and a table of the partitions that it has changed."""
    topics = {each.topic for each in mirror.topics if each.state == "promoted"}
    print_line(
        f"promoted {counted(len(topics), 'topic')} of mirror {mirror.name}: open transactions committed "
        f"{counts['committed']}, aborted {counts['aborted']}; offsets cut {counts['cut']}"
    )
    changed = [each for each in mirror.promoted if each.end != each.copied_end or each.cut]
    if changed:
        print_line("")
        print_table(
            ["topic", "partition", "copied end", "end", "committed", "aborted", "cut"],
            [
                [each.topic, each.partition, each.copied_end, each.end, each.committed, each.aborted, each.cut]
                for each in changed
            ],
        )


def _known(offset: int) -> int | None:
    return None if offset < 0 else offset
