"""A partition has one claim at a time, and a pause waits for the release of a claim."""

from __future__ import annotations

import threading

import pytest

from barnabas.broker.storage.cleaning.cleaning_states import CleaningStates
from barnabas.broker.storage.cleaning.errors import CleaningAborted
from tests.support.storage.bench import TP

_WAIT_S = 20


class _Pausing:
    """Calls `abort_and_pause` on a thread of its own."""

    def __init__(self, states: CleaningStates) -> None:
        self.done = threading.Event()
        self._states = states
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._states.abort_and_pause(TP)
        self.done.set()


def _await_abort(states: CleaningStates, aborted: threading.Event) -> None:
    assert aborted.wait(_WAIT_S)
    with pytest.raises(CleaningAborted):
        states.ensure_not_aborted(TP)


def test_one_claim_at_a_time() -> None:
    states = CleaningStates()
    assert states.claim(TP)
    assert not states.claim(TP)
    assert states.release(TP)
    assert states.claim(TP)


def test_a_pause_of_a_free_partition_does_not_wait_and_prevents_claims_until_each_pause_is_undone() -> None:
    states = CleaningStates()
    states.abort_and_pause(TP)
    states.abort_and_pause(TP)
    assert not states.claim(TP)
    states.resume([TP])
    assert not states.claim(TP)
    states.resume([TP])
    assert states.claim(TP)


def test_a_pause_waits_for_the_release_and_the_result_does_not_count() -> None:
    aborted = threading.Event()
    states = CleaningStates(on_abort=aborted.set)
    assert states.claim(TP)
    states.ensure_not_aborted(TP)
    pausing = _Pausing(states)
    _await_abort(states, aborted)
    assert not pausing.done.is_set()
    results: list[str] = []
    assert not states.release(TP, lambda: results.append("checkpoint written"))
    assert pausing.done.wait(_WAIT_S)
    assert results == []
    assert not states.claim(TP)
    states.resume([TP])
    assert states.claim(TP)
    assert states.release(TP, lambda: results.append("checkpoint written"))
    assert results == ["checkpoint written"]


def test_two_pauses_of_a_running_round_both_wait_and_both_count() -> None:
    aborted = threading.Event()
    states = CleaningStates(on_abort=aborted.set)
    assert states.claim(TP)
    both = [_Pausing(states), _Pausing(states)]
    _await_abort(states, aborted)
    states.release(TP)
    assert all(pausing.done.wait(_WAIT_S) for pausing in both)
    states.resume([TP])
    assert not states.claim(TP)
    states.resume([TP])
    assert states.claim(TP)


def test_a_release_with_a_failing_callback_releases_the_partition() -> None:
    states = CleaningStates()
    assert states.claim(TP)

    def fail() -> None:
        raise OSError("no checkpoint")

    with pytest.raises(OSError, match="no checkpoint"):
        states.release(TP, fail)
    assert states.claim(TP)


def test_retention_pauses_only_free_partitions() -> None:
    states = CleaningStates()
    other = TP._replace(partition=1)
    assert states.claim(other)
    assert states.pause_free([TP, other]) == [TP]
    assert not states.claim(TP)
    states.resume([TP])
    assert states.describe(TP) == "idle"
    assert states.describe(other) == "in progress"


def test_resuming_a_partition_that_is_not_paused_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="orders-0 is resumed"):
        CleaningStates().resume([TP])
