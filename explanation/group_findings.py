"""Whether retention overtakes a group, and which members hold it up. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from barnabas.protocol.messages.groups.explain_group import (
    ExplainGroupResponse,
    MemberTiming,
    PartitionLag,
    WaitsFor,
)

_ACTIONS: Final = frozenset({WaitsFor.JOIN.value, WaitsFor.SYNC.value, WaitsFor.REVOCATION.value})
"""What other members wait for."""


class Verdict(StrEnum):
    """What retention does to the records that the group has not read."""

    CAUGHT_UP = "caught_up"
    """There are none."""
    KEPT = "kept"
    """Nothing deletes the first of them, as things are."""
    OVERTAKEN = "overtaken"
    """It deletes some if the group commits nothing until then."""
    LOST = "lost"
    """The committed offset is below the log start offset: some are deleted already."""
    UNKNOWN = "unknown"
    """The log cannot be read: its directory is offline, or a file is damaged."""


@dataclass(frozen=True, slots=True)
class PartitionFinding:
    """One partition. Offsets count as records.

    `lag_ms`: age of the next record, None if it is not known. `lost`: records deleted unread already. `at_risk`:
    records that the next deletion takes, between `overtaken_earliest_ms` and `overtaken_latest_ms` (wall clock), by
    `rule`, unless the group commits meanwhile; 0 and None: no deletion.
    """

    lag: PartitionLag
    verdict: Verdict
    lag_records: int
    lag_ms: int | None
    lost: int
    at_risk: int
    overtaken_earliest_ms: int | None
    overtaken_latest_ms: int | None
    rule: str | None


@dataclass(frozen=True, slots=True)
class ExplainedGroup:
    """A group. `holding_up`: members that the others wait for."""

    group_id: str
    facts: ExplainGroupResponse
    partitions: tuple[PartitionFinding, ...]
    holding_up: tuple[MemberTiming, ...]


def explain_group(group_id: str, facts: ExplainGroupResponse) -> ExplainedGroup:
    """Explain a group from what its broker tells."""
    return ExplainedGroup(
        group_id,
        facts,
        tuple(explain_partition(each, now_ms=facts.now_ms) for each in facts.partitions),
        tuple(each for each in facts.members if each.waits_for in _ACTIONS),
    )


def explain_partition(lag: PartitionLag, *, now_ms: int) -> PartitionFinding:
    """Explain one partition of a group."""
    lag_records = max(0, lag.high_watermark - lag.committed)
    lost = max(0, min(lag.log_start_offset, lag.high_watermark) - lag.committed)
    lag_ms = None
    if lag.next_timestamp_ms is not None and lag.next_timestamp_ms >= 0:
        lag_ms = max(0, now_ms - lag.next_timestamp_ms)
    first = lag.deletions[0] if lag.deletions else None
    at_risk, earliest, latest, rule = 0, None, None, None
    if first is not None and first.earliest_ms is not None:
        next_offset = max(lag.committed, lag.log_start_offset)
        at_risk = max(0, min(first.end_offset, lag.high_watermark) - next_offset)
        earliest, latest, rule = first.earliest_ms, first.latest_ms, first.rule
    if lost:
        verdict = Verdict.LOST
    elif not lag_records:
        verdict = Verdict.CAUGHT_UP
    elif first is None:
        verdict = Verdict.UNKNOWN
    else:
        verdict = Verdict.OVERTAKEN if at_risk else Verdict.KEPT
    return PartitionFinding(lag, verdict, lag_records, lag_ms, lost, at_risk, earliest, latest, rule)
