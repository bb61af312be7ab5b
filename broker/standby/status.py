"""The status of a standby, as `barnabas standby status --json` prints it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.broker.mirrors.status import PartitionCopyState

if TYPE_CHECKING:
    from barnabas.broker.metadata.directories.standby_state import StandbyState
    from barnabas.broker.standby.replica import Replica


def status_of(state: StandbyState, replica: Replica | None, peer: str, *, is_active: bool) -> dict[str, Any]:
    """Return the status. `state`: active, connecting (the copy was never complete), copying, caught_up or failed."""
    if is_active or replica is None:
        return {
            "state": "active" if is_active else "connecting",
            "number": state.number,
            "active": None if is_active else peer,
            "error": None,
            "metadata": {"offset": -1, "source_offset": -1},
            "lag_records": 0 if is_active else None,
            "seconds_since_fetch": None,
            "partitions": [],
        }
    partitions = replica.partitions()
    error = replica.error or replica.fetch_error
    lags = [each.lag_records for each in partitions]
    is_behind = replica.metadata_offset < replica.metadata_end or None in lags or any(lags)
    if not replica.is_complete_once:
        name = "connecting"
    elif error is not None or replica.missing() or any(each.state is PartitionCopyState.FAILED for each in partitions):
        name = "failed"
    else:
        name = "copying" if is_behind or replica.metadata_end < 0 else "caught_up"
    return {
        "state": name,
        "number": state.number,
        "active": peer,
        "error": error,
        "metadata": {"offset": replica.metadata_offset, "source_offset": replica.metadata_end},
        "lag_records": None if None in lags else sum(each or 0 for each in lags),
        "seconds_since_fetch": replica.seconds_since_fetch,
        "partitions": [
            {
                "topic": each.topic,
                "partition": each.partition,
                "state": each.state.value,
                "offset": each.offset,
                "source_offset": each.source_offset,
                "lag_records": each.lag_records,
                "lag_seconds": each.lag_seconds,
                "error": each.error,
            }
            for each in partitions
        ]
        + [
            {
                "topic": key.topic,
                "partition": key.partition,
                "state": PartitionCopyState.FAILED.value,
                "offset": -1,
                "source_offset": -1,
                "lag_records": None,
                "lag_seconds": None,
                "error": reason,
            }
            for key, reason in replica.missing().items()
        ],
    }
