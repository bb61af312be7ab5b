"""Rates and token buckets, compared with the numbers of Apache Kafka's Rate and TokenBucket.

kafka_rates.json is the output of tests/interop/java/Rates.java with the classes of Kafka 4.3.0.
"""

from __future__ import annotations

import json
import math
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.quotas import rate as rate_module
from barnabas.broker.quotas.rate import FOREVER_MS, Rate, WindowSizes
from barnabas.broker.quotas.tally import PythonTally, Tally
from barnabas.broker.quotas.token_bucket import TokenBucket

BOUND = 1000
RECORDED = json.loads((Path(__file__).parent / "kafka_rates.json").read_text())


ROWS_BY_WINDOWS = [
    (WindowSizes(*sizes), list(rows)) for sizes, rows in groupby(RECORDED["rate"], key=lambda row: (row[0], row[1]))
]


@pytest.fixture(autouse=True, params=[PythonTally] if Tally is PythonTally else [Tally, PythonTally])
def _tally(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test with the compiled tally, if it was built, and with its Python twin."""
    monkeypatch.setattr(rate_module, "Tally", request.param)


@pytest.mark.parametrize(("windows", "rows"), ROWS_BY_WINDOWS, ids=["11x1", "3x2", "1x1"])
def test_a_rate_is_that_of_kafka(windows: WindowSizes, rows: list[Any]) -> None:
    rate = Rate(windows)
    for _, _, now_ms, value, per_second, throttle_ms in rows:
        rate.record(value, now_ms)
        assert rate.per_second(now_ms) == pytest.approx(per_second)
        assert rate.throttle_ms(BOUND, now_ms) == throttle_ms


def test_the_tokens_are_those_of_kafka() -> None:
    bucket = TokenBucket(WindowSizes())
    for per_second, now_ms, value, throttle_ms in RECORDED["tokens"]:
        bucket.record(value, per_second, now_ms)
        assert bucket.throttle_ms(per_second, now_ms) == throttle_ms


def test_a_value_that_is_taken_back_leaves_no_trace() -> None:
    rate = Rate(WindowSizes())
    rate.record(100_000, 0)
    throttle_ms = rate.throttle_ms(BOUND, 0)
    rate.record(50_000, 0)
    rate.record(-50_000, 0)
    assert rate.throttle_ms(BOUND, 0) == throttle_ms


def test_a_client_that_waits_for_its_throttle_time_is_at_its_bound() -> None:
    rate = Rate(WindowSizes())
    rate.record(30_000, 0)
    wait_ms = rate.throttle_ms(BOUND, 0)
    assert wait_ms == 20_000
    small = Rate(WindowSizes())
    small.record(10_500, 0)
    wait_ms = small.throttle_ms(BOUND, 0)
    assert small.throttle_ms(BOUND, wait_ms) == 0 < small.throttle_ms(BOUND, wait_ms - 1)


def test_the_samples_of_a_rate_survive_reading_them() -> None:
    rate = Rate(WindowSizes(3, 1))
    for now_ms, value in ((0, 1), (500, 2), (1000, 4), (2100, 8)):
        rate.record(value, now_ms)
        assert rate.samples() == rate.samples()
    assert rate.samples() == [(0, 500, 3.0), (1000, 1000, 4.0), (2100, 2100, 8.0)]
    rate.per_second(3600)  # the first sample expires
    assert rate.samples() == [(3600, 3600, 0.0), (1000, 1000, 4.0), (2100, 2100, 8.0)]


def test_a_rate_is_idle_once_no_sample_counts() -> None:
    rate = Rate(WindowSizes())
    assert rate.is_idle(0)
    rate.record(1, 0)
    assert not rate.is_idle(10_999)
    assert rate.is_idle(11_000)


def test_a_bucket_is_full_again_after_the_time_that_refills_it() -> None:
    bucket = TokenBucket(WindowSizes())
    bucket.record(12, 1.0, 0)
    assert bucket.throttle_ms(1.0, 0) == 1000
    assert not bucket.is_full(1.0, 11_999)
    assert bucket.is_full(1.0, 12_000)


@pytest.mark.parametrize(
    ("bound", "throttle_ms"), [(0.0, FOREVER_MS), (1e-300, FOREVER_MS), (math.inf, 0), (math.nan, 0), (1e308, 0)]
)
def test_a_bound_may_be_any_number_that_a_record_contains(bound: float, throttle_ms: int) -> None:
    rate = Rate(WindowSizes())
    assert rate.record_and_throttle_ms(5, bound, 0) == throttle_ms
    bucket = TokenBucket(WindowSizes())
    bucket.record(5, bound, 0)
    assert bucket.throttle_ms(bound, 0) == throttle_ms


def test_a_rate_of_one_sample_is_limited_too() -> None:
    rate = Rate(WindowSizes(1, 1))
    assert rate.record_and_throttle_ms(1, BOUND, 0) == 0
    assert rate.record_and_throttle_ms(1000, BOUND, 1000) > 0
