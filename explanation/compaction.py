"""The compaction of a partition as sentences for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from barnabas.broker.storage.explanation.compaction import WaitsFor
from barnabas.explanation.wording import time_text
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


def failure_sentence(compaction: ExplainedCompaction) -> str:
    """Why a log is not cleaned any more, and what to do. It has an `error`."""
    return (
        f"it is not cleaned any more, because a round failed: {compaction.error}; repair the log (`barnabas log "
        "verify` names the damage) and restart the broker"
    )


def _reason(reason: str, compaction: ExplainedCompaction, settings: Mapping[str, SettingValue]) -> str:
    """One sentence with the numbers, and what to change."""
    match reason:
        case WaitsFor.UNCLEANABLE:
            return failure_sentence(compaction)
        case WaitsFor.CLEANER_DISABLED:
            return f"{_setting(settings['log.cleaner.enable'])}: nothing is cleaned; set it to true"
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
            young = f"records are too young: {_setting(settings['min.compaction.lag.ms'])}"
            if compaction.old_enough_ms is None:
                return young
            return f"{young}; those of the next segment are old enough at {time_text(compaction.old_enough_ms)}"
        case WaitsFor.OPEN_TRANSACTION:
            return "records from the last stable offset on wait for an open transaction: `barnabas explain transaction`"
        case WaitsFor.DIRTY_RATIO:
            ratio = _setting(settings["min.cleanable.dirty.ratio"])
            if compaction.missing_bytes is None:
                return f"no log is ever dirtier than {ratio}; lower it"
            return f"{compaction.missing_bytes:,} more dirty bytes make it due: {ratio}"
        case WaitsFor.OTHER_LOGS:
            threads = _setting(settings["log.cleaner.threads"])
            return (
                f"it is due, and dirtier logs come first; more of them are cleaned at a time with more than {threads}"
            )
        case WaitsFor.NEXT_LOOK:
            return f"it is due: the cleaner takes it when it looks next: {_setting(settings['log.cleaner.backoff.ms'])}"
        case WaitsFor.POSTPONED:
            backoff = _setting(settings["log.cleaner.backoff.ms"])
            return (
                "its latest round lacked disk space, descriptors or memory, as the broker's log says, and is repeated "
                f"after {backoff}"
            )
        case WaitsFor.THROTTLED:
            rate = _setting(settings["log.cleaner.io.max.bytes.per.second"])
            return f"the cleaner is waiting, because it has read and written what {rate} allows; raise it"
        case _:
            return reason  # of a newer broker


def _setting(setting: SettingValue) -> str:
    return f"{setting.name}={setting.value} ({setting.origin})"
