"""Which series count as a rising trend."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from tests.torture.soak.trends import Sample, trend


def noise(age: float) -> float:
    return random.Random(age).uniform(-5, 5)


SERIES: dict[str, tuple[Callable[[float], float], bool]] = {
    "flat": (lambda _: 100, False),
    "noisy": (lambda age: 100 + noise(age), False),
    "a saw": (lambda age: 100 + age % 25, False),
    "a wave": (lambda age: 100 + 20 * math.sin(age / 5), False),
    "a step": (lambda age: 100 if age < 150 else 140, False),
    "warm-up": (lambda age: min(age, 30), False),
    "falling": (lambda age: 400 - age, False),
    "a small rise": (lambda age: 100 + age / 100, False),
    "a leak": (lambda age: 100 + age / 5, True),
    "a noisy leak": (lambda age: 100 + age / 5 + noise(age), True),
    "a leak in a saw": (lambda age: 100 + age / 4 + age % 25, True),
}


@pytest.mark.parametrize("name", SERIES)
def test_a_series_rises_if_it_is_a_leak(name: str) -> None:
    value, is_leak = SERIES[name]
    samples = [Sample(age, value(age)) for age in range(300)]

    found = trend(samples, warm_up_s=30, least=10, share=0.1)

    assert found is not None
    assert found.is_rising == is_leak, found


def test_a_short_life_is_not_judged() -> None:
    assert trend([Sample(age, age) for age in range(40)], warm_up_s=20, least=1, share=0) is None
