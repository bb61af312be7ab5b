"""An explained start as JSON for programs, and as sentences for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from barnabas.explanation.start_findings import Stop, stop_of
from barnabas.explanation.wording import counted, duration_text, time_text
from barnabas.protocol.messages.cluster.explain_start import ExplainStartResponse, RecoveredLog, StartedDirectory

SHOWN_LOGS = 20
"""Logs that are shown to people; the JSON has up to 100 of a running broker, and all of directories."""


def json_of(start: ExplainStartResponse, *, is_next: bool) -> dict[str, Any]:
    """The document of `--json`; docs/explain.md has its fields. `is_next`: the start has not happened yet."""

    def past(value: int | float) -> int | float | None:
        return None if is_next else value

    return {
        "start": "next" if is_next else "last",
        "began_ms": past(start.began_ms),
        "loaded_ms": past(start.loaded_ms),
        "ready_ms": past(start.ready_ms),
        "booted_ms": start.booted_ms,
        "directories": [
            {
                "path": each.path,
                "stop": stop_of(each, start.booted_ms).value,
                "last_change_ms": each.last_change_ms,
                "logs": each.logs,
                "seconds": past(each.seconds),
            }
            for each in start.directories
        ],
        "recovered_logs": start.recovered_logs,
        "recovered_bytes": start.recovered_bytes,
        "logs": [
            {
                "topic": each.topic,
                "partition": each.partition,
                "log_dir": each.log_dir,
                "seconds": past(each.seconds),
                "segments": each.segments,
                "size_bytes": each.size_bytes,
                "dropped_segments": each.dropped_segments,
                "dropped_bytes": each.dropped_bytes,
            }
            for each in start.logs
        ],
    }


def sentences_of(start: ExplainStartResponse, *, is_next: bool) -> Iterator[str]:
    """The lines for people: the start as a whole, each directory, and the logs that are recovered."""
    if not is_next:
        loading = duration_text(start.loaded_ms - start.began_ms)
        whole = duration_text(start.ready_ms - start.began_ms)
        yield f"the broker started at {time_text(start.began_ms)}, and was ready after {whole}; loading took {loading}"
    for directory in start.directories:
        yield _directory(directory, start, is_next=is_next)
        yield f"  {_stop(stop_of(directory, start.booted_ms), start, is_next=is_next)}"
    if not start.recovered_logs:
        yield "no log is recovered" if is_next else "no log was recovered"
        return
    how_many = counted(start.recovered_logs, "log")
    what = f"{how_many} with {start.recovered_bytes:,} bytes from their recovery points on"
    if is_next:
        yield f"a start reads {what}, checks every batch, and cuts each log at the first damaged or torn one"
    else:
        yield f"read and checked {what}"
    for log in start.logs[:SHOWN_LOGS]:
        yield f"  {_log(log, is_next=is_next)}"
    if start.recovered_logs > SHOWN_LOGS:
        yield f"  and {start.recovered_logs - SHOWN_LOGS:,} more"


def _directory(directory: StartedDirectory, start: ExplainStartResponse, *, is_next: bool) -> str:
    logs = counted(directory.logs, "log")
    return f"{directory.path}: {logs}" if is_next else f"{directory.path}: {logs}, loaded in {directory.seconds:.3f} s"


def _stop(stop: Stop, start: ExplainStartResponse, *, is_next: bool) -> str:
    marker = "there is no marker of a clean stop (.kafka_cleanshutdown)"
    match stop:
        case Stop.CLEAN:
            return "the last stop was clean: its marker is there, and nothing needs recovery"
        case Stop.NO_LOGS:
            return "it has no logs that could need recovery"
        case Stop.MACHINE_RESTARTED:
            booted = time_text(start.booted_ms or 0)
            return (
                f"the last stop was unclean: {marker}, and the machine was started at {booted}, after the last run: it "
                "lost power, crashed, or did not wait for the broker when it was shut down"
            )
        case Stop.PROCESS_ENDED:
            return (
                f"the last stop was unclean: {marker}, and the machine ran on: the process was killed (kill -9, out of "
                "memory, a second signal, a stop timeout that is too short), crashed, could not flush a log, or was "
                f"stopped while it loaded its logs{'; or it is running' if is_next else ''}"
            )
        case _:
            return f"the last stop was unclean: {marker}"


def _log(log: RecoveredLog, *, is_next: bool) -> str:
    name = f"{log.topic}-{log.partition}"
    read = f"{counted(log.segments, 'segment')}, {log.size_bytes:,} bytes"
    if not is_next:
        read += f" in {log.seconds:.3f} s"
    if not log.dropped_bytes and not log.dropped_segments:
        return f"{name}: {read}"
    verb = "would cut off" if is_next else "cut off"
    segments = f", with {counted(log.dropped_segments, 'whole segment')}" if log.dropped_segments else ""
    return f"{name}: {read}; {verb} {log.dropped_bytes:,} bytes at the first damaged or torn batch{segments}"
