"""Whether a measure of a process rises for as long as it runs.

A limit would have to know the load; a leak shows itself by never ending. The samples of one process life, without its
warm-up, are put into twelve bins of equal duration, and each bin counts by its median, so that single peaks and samples
that depend on their neighbours weigh little. The measure rises if both hold:

    it is steady     Mann-Kendall: of all pairs of bins, many more rise than fall (S above 2.6 standard deviations,
                     one-sided p < 0.005)
    it is large      Theil-Sen: the median slope of all pairs, times the duration, is at least `least`, and at least
                     `share` of the first bin

A single step passes: with equal values before and after it, S is small. So does a rise that ends early on.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

BINS = 12
_DEVIATIONS = 2.6


class Sample(NamedTuple):
    """A value at an age (seconds) of the process."""

    age: float
    value: float


class Trend(NamedTuple):
    """The rise over the whole series, and whether it counts as one."""

    first: float
    rise: float
    deviations: float
    is_rising: bool


def trend(samples: Sequence[Sample], *, warm_up_s: float, least: float, share: float) -> Trend | None:
    """Judge one series in the order of ages; None if too few samples are left after the warm-up."""
    rest = [each for each in samples if each.age >= warm_up_s]
    if len(rest) < 2 * BINS:
        return None
    bins = _bins(rest)
    slope = statistics.median((later.value - early.value) / (later.age - early.age) for early, later in pairs(bins))
    rise = slope * (bins[-1].age - bins[0].age)
    signs = sum((later.value > early.value) - (later.value < early.value) for early, later in pairs(bins))
    count = len(bins)
    deviations = signs / math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    is_large = rise >= max(least, share * abs(bins[0].value))
    return Trend(bins[0].value, rise, deviations, is_large and deviations > _DEVIATIONS)


def pairs(bins: Sequence[Sample]) -> combinations[tuple[Sample, Sample]]:
    """Return all pairs, the earlier one first."""
    return combinations(bins, 2)


def _bins(samples: Sequence[Sample]) -> list[Sample]:
    start, width = samples[0].age, (samples[-1].age - samples[0].age) / BINS
    found: list[list[Sample]] = [[] for _ in range(BINS)]
    for each in samples:
        found[min(BINS - 1, int((each.age - start) / width))].append(each)
    return [
        Sample(statistics.fmean(each.age for each in group), statistics.median(each.value for each in group))
        for group in found
        if group
    ]
