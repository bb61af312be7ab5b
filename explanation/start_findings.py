"""Why a stop counts as clean or unclean. Pure."""

from __future__ import annotations

from enum import StrEnum

from barnabas.protocol.messages.cluster.explain_start import StartedDirectory


class Stop(StrEnum):
    """How the run before a start ended, by what it left in a log directory."""

    CLEAN = "clean"
    """The marker is there: every log was flushed and closed."""
    NO_LOGS = "no_logs"
    """There is nothing to recover."""
    MACHINE_RESTARTED = "machine_restarted"
    """No marker, and the machine was started after the run: power loss, a crash or a reboot that did not wait."""
    PROCESS_ENDED = "process_ended"
    """No marker, and the machine ran on: the process was killed, crashed, or could not finish its stop."""
    UNKNOWN = "unknown"
    """No marker, and the kernel does not tell when the machine was started."""


def stop_of(directory: StartedDirectory, booted_ms: int | None) -> Stop:
    """Return how the run before ended. `booted_ms`: the machine's start, None if it is not known."""
    if directory.had_clean_shutdown:
        return Stop.CLEAN
    if not directory.logs or directory.last_change_ms is None:
        return Stop.NO_LOGS
    if booted_ms is None:
        return Stop.UNKNOWN
    return Stop.MACHINE_RESTARTED if directory.last_change_ms < booted_ms else Stop.PROCESS_ENDED
