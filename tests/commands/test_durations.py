from __future__ import annotations

import click
import pytest

from barnabas.commands.durations import parse_duration
from barnabas.explanation.wording import duration_text


@pytest.mark.parametrize(
    ("text", "ms"), [("90s", 90_000), ("15m", 900_000), ("2h", 7_200_000), ("1d", 86_400_000), ("P1DT2H", 93_600_000)]
)
def test_durations_are_parsed(text: str, ms: int) -> None:
    assert parse_duration(text) == ms


@pytest.mark.parametrize("text", ["", "P", "PT", "5", "-1s", "1.5h"])
def test_an_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        parse_duration(text)


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (-5, "0ms"),
        (850, "850ms"),
        (42_000, "42s"),
        (60_000, "1m"),
        (303_999, "5m 3s"),
        (7_800_000, "2h 10m"),
        (90_000_000_000, "1041d 16h"),
    ],
)
def test_durations_are_written_with_their_two_largest_units(ms: int, text: str) -> None:
    assert duration_text(ms) == text
