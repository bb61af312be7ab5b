"""An explained group as JSON for programs, and as sentences for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from barnabas.explanation.group_findings import ExplainedGroup, PartitionFinding, Verdict
from barnabas.explanation.wording import counted, duration_text, time_text
from barnabas.protocol.messages.groups.explain_group import (
    GroupEvent,
    GroupEventKind,
    MemberTiming,
    PartitionLag,
    WaitsFor,
)

_EVENTS: Final = {
    GroupEventKind.JOINED: "joined",
    GroupEventKind.JOINED_AGAIN: "joined again",
    GroupEventKind.LEFT: "left",
    GroupEventKind.SESSION_ENDED: "was removed: no heartbeat within its session timeout",
    GroupEventKind.JOIN_TIMED_OUT: "was removed: it did not join the rebalance in time (max.poll.interval.ms)",
    GroupEventKind.SYNC_TIMED_OUT: "was removed: it joined, and did not ask for its assignment in time",
    GroupEventKind.REVOCATION_TIMED_OUT: "was removed: it did not give up partitions in time (max.poll.interval.ms)",
    GroupEventKind.REBALANCE_BEGAN: "a rebalance began",
    GroupEventKind.STABLE: "the group is stable: every member has its assignment",
    GroupEventKind.EMPTY: "the group is empty",
    GroupEventKind.UPGRADED: "the group became a consumer group, because a member of the consumer protocol joined",
    GroupEventKind.DOWNGRADED: "the group became a classic group: its last member of the consumer protocol is gone",
}

_SHARE: Final = "share"
_NOT_READY: Final = "NotReady"
"""State of a streams group."""

_WAITS: Final = {
    WaitsFor.JOIN: "join the rebalance: its client calls poll too seldom, or is gone",
    WaitsFor.SYNC: "ask for its assignment",
    WaitsFor.REVOCATION: "give up partitions or tasks: its client calls poll too seldom, or is gone",
}


def json_of(explained: ExplainedGroup) -> dict[str, Any]:
    """The document of `--json`; docs/explain.md has its fields."""
    facts = explained.facts
    holding_up = {each.member_id for each in explained.holding_up}
    return {
        "group": explained.group_id,
        "now_ms": facts.now_ms,
        "state": facts.state,
        "type": facts.group_type,
        "state_since_ms": facts.state_since_ms,
        "members": [
            {
                "member_id": each.member_id,
                "instance_id": each.instance_id,
                "client_id": each.client_id,
                "client_host": each.client_host,
                "session_timeout_ms": each.session_timeout_ms,
                "session_left_ms": each.session_left_ms,
                "waits_for": each.waits_for or None,
                "wait_left_ms": each.wait_left_ms,
                "holds_up": each.member_id in holding_up,
            }
            for each in facts.members
        ],
        "partitions": [_partition(each) for each in explained.partitions],
        "events": [each.as_dict() for each in facts.events],
        "problems": list(facts.problems),
    }


def sentences_of(
    explained: ExplainedGroup, shown: Callable[[PartitionFinding], bool] = lambda _: True
) -> Iterator[str]:
    """The lines for people: the group, the members that hold it up, its partitions that are `shown`, its history."""
    facts = explained.facts
    since = "" if facts.state_since_ms is None else f" since {time_text(facts.state_since_ms)}"
    kind = facts.group_type.lower()
    yield f"group {explained.group_id} ({kind}) is {facts.state}{since}, {counted(len(facts.members), 'member')}"
    if facts.state == _NOT_READY:
        yield (
            "  its application waits: topics that it needs are missing or have the wrong number of partitions; its log "
            "says which"
        )
    for problem in facts.problems:
        yield f"  {problem}"
    for member in explained.holding_up:
        yield f"  {_holding_up(member)}"
    if kind == _SHARE:
        yield (
            "  a share group commits no offsets; where it begins in each partition, and its lag: `barnabas group "
            f"describe {explained.group_id}`"
        )
    elif not explained.partitions:
        yield "  it has no committed offsets"
    for finding in filter(shown, explained.partitions):
        yield f"  {_lag(finding)}"
        if sentence := retention_sentence(finding, facts.now_ms):
            yield f"    {sentence}"
    yield ""
    if not facts.events:
        yield "history: nothing since the broker's start"
        return
    yield "history, the latest events since the broker's start:"
    for event in facts.events:
        yield f"  {_event(event)}"


def _partition(finding: PartitionFinding) -> dict[str, Any]:
    lag = finding.lag
    return {
        "topic": lag.topic,
        "partition": lag.partition,
        "committed": lag.committed,
        "committed_ms": lag.committed_ms,
        "log_start_offset": lag.log_start_offset,
        "high_watermark": lag.high_watermark,
        "lag_records": finding.lag_records,
        "lag_bytes": lag.lag_bytes,
        "lag_ms": finding.lag_ms,
        "verdict": finding.verdict.value,
        "lost_records": finding.lost,
        "at_risk_records": finding.at_risk,
        "overtaken_earliest_ms": finding.overtaken_earliest_ms,
        "overtaken_latest_ms": finding.overtaken_latest_ms,
        "rule": finding.rule,
        "deletions": [each.as_dict() for each in lag.deletions],
    }


def _holding_up(member: MemberTiming) -> str:
    who = _who(member.client_id, member.client_host, member.member_id)
    left = "" if member.wait_left_ms is None else f"; it is removed in {duration_text(member.wait_left_ms)}"
    return f"the group waits for {who} to {_WAITS[WaitsFor(member.waits_for)]}{left}"


def _lag(finding: PartitionFinding) -> str:
    lag = finding.lag
    where = f"{lag.topic}-{lag.partition}: committed {lag.committed} at {time_text(lag.committed_ms)}"
    if not finding.lag_records:
        return f"{where}, which is the end: no lag"
    parts = [counted(finding.lag_records, "record")]
    if lag.lag_bytes is not None:
        parts.append(f"{lag.lag_bytes:,} bytes")
    if finding.lag_ms is not None:
        parts.append(f"the next record is {duration_text(finding.lag_ms)} old")
    return f"{where}, end {lag.high_watermark}: behind by {', '.join(parts)}"


def retention_sentence(finding: PartitionFinding, now_ms: int) -> str:
    """What retention does to the records that the group has not read; empty if there are none."""
    lag = finding.lag
    match finding.verdict:
        case Verdict.CAUGHT_UP:
            return ""
        case Verdict.UNKNOWN:
            return "its log cannot be read: its directory is offline, or a file is damaged"
        case Verdict.KEPT:
            return "retention deletes none of them, as things are"
        case Verdict.LOST:
            lost = counted(finding.lost, "record")
            return (
                f"retention has overtaken the group: {lost} from {lag.committed} to {lag.log_start_offset - 1} are "
                f"deleted unread; auto.offset.reset of the consumers decides where they go on{_next(finding, now_ms)}"
            )
        case _:
            return _overtaken(finding, now_ms)


def _next(finding: PartitionFinding, now_ms: int) -> str:
    return f"; {_overtaken(finding, now_ms)}" if finding.at_risk else ""


def _overtaken(finding: PartitionFinding, now_ms: int) -> str:
    lag: PartitionLag = finding.lag
    earliest = finding.overtaken_earliest_ms or 0
    when = f"in {duration_text(earliest - now_ms)}" if earliest > now_ms else "at its next check"
    if finding.overtaken_latest_ms is None:
        when += ", but not before the partition's move to another log directory is over"
    rule = "the log start offset" if finding.rule == "log.start.offset" else finding.rule
    last = max(lag.committed, lag.log_start_offset) + finding.at_risk - 1
    return (
        f"retention deletes {counted(finding.at_risk, 'unread record')}, up to offset {last}, {when} "
        f"({time_text(earliest)}) by {rule}, unless the group commits beyond by then; "
        f"`barnabas explain partition {lag.topic}-{lag.partition}` says why, and a larger {rule} keeps them"
    )


def _event(event: GroupEvent) -> str:
    what = _EVENTS[GroupEventKind(event.kind)] if event.kind in _KNOWN else event.kind
    who = f"{_who(event.client_id, event.client_host, event.member_id)} " if event.member_id else ""
    return f"{time_text(event.time_ms)}  {who}{what}" + (f": {event.detail}" if event.detail else "")


_KNOWN: Final = frozenset(each.value for each in GroupEventKind)


def _who(client_id: str, host: str, member_id: str) -> str:
    return f"{client_id}@{host} ({member_id})" if client_id else f"member {member_id}"
