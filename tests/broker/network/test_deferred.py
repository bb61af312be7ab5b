"""A response that is not available yet, in Python and compiled."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.broker.network.deferred import Deferred, PythonDeferred

Kind = type[PythonDeferred[Any]]


@pytest.fixture(params=[PythonDeferred] if Deferred is PythonDeferred else [Deferred, PythonDeferred])
def kind(request: pytest.FixtureRequest) -> Kind:
    chosen: Kind = request.param
    return chosen


def test_a_callback_gets_the_value_whether_it_is_set_before_or_after(kind: Kind) -> None:
    seen: list[object] = []
    early, late = kind(), kind()
    early.then(seen.append)
    assert not early.done
    early.resolve("early")
    late.resolve("late")
    assert (late.done, late.value) == (True, "late")
    late.then(seen.append)
    assert seen == ["early", "late"]


def test_the_callback_runs_after_the_deferred_is_done(kind: Kind) -> None:
    deferred = kind()
    seen: list[bool] = []
    deferred.then(lambda _: seen.append(deferred.done))
    deferred.resolve(None)
    assert seen == [True]


def test_a_cancelled_deferred_drops_its_callback_and_its_value(kind: Kind) -> None:
    seen: list[object] = []
    deferred = kind(lambda: seen.append("cancelled"))
    deferred.then(seen.append)
    deferred.cancel()
    deferred.cancel()
    deferred.resolve(1)
    assert (seen, deferred.done) == (["cancelled"], True)


def test_a_resolved_deferred_is_not_cancelled(kind: Kind) -> None:
    seen: list[object] = []
    deferred = kind(lambda: seen.append("cancelled"))
    deferred.resolve(1)
    deferred.cancel()
    deferred.then(seen.append)
    assert seen == [1]


def test_misuse_is_refused(kind: Kind) -> None:
    deferred = kind()
    with pytest.raises(RuntimeError, match="has no value yet"):
        _ = deferred.value
    deferred.resolve(1)
    with pytest.raises(RuntimeError, match="resolved twice"):
        deferred.resolve(2)


def test_the_type_of_the_value_may_be_named(kind: Kind) -> None:
    indexable: Any = kind
    assert not indexable[int]().done
