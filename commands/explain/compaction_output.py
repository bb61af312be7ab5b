"""The compaction of a partition as sentences for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from barnabas.broker.storage.explanation.compaction import WaitsFor
from barnabas.commands.output import time_text
from barnabas.protocol.messages.topics.explain_topic import ExplainedCompaction, SettingValue


def compaction_sentences(compaction: ExplainedCompaction, settings: Mapping[str, SettingValue]) -> Iterator[str]:
    """How dirty the log is, then why it is not cleaned now."""
    total = compaction.clean_bytes + compaction.dirty_bytes
    line = (
        f"  compaction: {compaction.dirty_bytes:,} of {total:,} bytes are dirty (ratio {compaction.dirty_ratio:.2f}), "
        f"from offset {compaction.first_dirty_offset} to {compaction.first_uncleanable_offset}"
    )
    if compaction.seconds is not None and compaction.freed_bytes is not None and total:
        line += (
            f"; by the rounds since the start, a round takes {compaction.seconds:.1f} s and frees about "
            f"{compaction.freed_bytes:,} bytes"
        )
    yield line
    for reason in compaction.waits_for:
        yield f"    {_reason(reason, compaction, settings)}"
    if compaction.due_latest_ms is not None and WaitsFor.DIRTY_RATIO in compaction.waits_for:
        setting = _setting(settings["max.compaction.lag.ms"])
        yield f"    it is cleaned at {time_text(compaction.due_latest_ms)} at the latest: {setting}"


def _reason(reason: str, compaction: ExplainedCompaction, settings: Mapping[str, SettingValue]) -> str:
    """One sentence with the numbers, and what to change."""
    match reason:
        case WaitsFor.UNCLEANABLE:
            return (
                f"it is not cleaned any more, because a round failed: {compaction.error}; repair the log (`barnabas "
                "log verify` names the damage) and restart the broker"
            )
        case WaitsFor.CLEANER_DISABLED:
            return "log.cleaner.enable is false: nothing is cleaned"
        case WaitsFor.IN_PROGRESS:
            return "it is being cleaned now"
        case WaitsFor.PAUSED:
            return "the cleaner is paused for it: a move or a truncation is under way"
        case WaitsFor.NOTHING_DIRTY:
            return "nothing is dirty: every record below the active segment was compacted"
        case WaitsFor.ACTIVE_SEGMENT:
            limits = ", ".join(_setting(settings[name]) for name in ("segment.ms", "segment.bytes"))
            return f"the active segment is not cleaned before it rolls: {limits}"
        case WaitsFor.MIN_COMPACTION_LAG:
            return f"records are too young: {_setting(settings['min.compaction.lag.ms'])}"
        case WaitsFor.OPEN_TRANSACTION:
            return "records from the last stable offset on wait for an open transaction: `barnabas explain transaction`"
        case WaitsFor.DIRTY_RATIO:
            ratio = _setting(settings["min.cleanable.dirty.ratio"])
            if compaction.missing_bytes is None:
                return f"no log is ever dirtier than {ratio}; lower it"
            return f"{compaction.missing_bytes:,} more dirty bytes make it due: {ratio}"
        case WaitsFor.OTHER_LOGS:
            return "it is due, and dirtier logs come first; log.cleaner.threads cleans more of them at a time"
        case WaitsFor.NEXT_LOOK:
            return "it is due: the cleaner takes it when it looks next (log.cleaner.backoff.ms)"
        case _:
            return reason  # of a newer broker


def _setting(setting: SettingValue) -> str:
    return f"{setting.name}={setting.value} ({setting.origin})"
