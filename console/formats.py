"""The templates' environment, and how numbers, sizes and times are written in pages."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

_UNKNOWN: Final = "\N{EN DASH}"
_BINARY: Final = ("KiB", "MiB", "GiB", "TiB", "PiB")


def count_text(value: float | None) -> str:
    """12,345; a dash for None."""
    return _UNKNOWN if value is None else f"{value:,.0f}"


def bytes_text(value: float | None) -> str:
    """1.5 MiB; a dash for None and for the -1 of an unknown size."""
    if value is None or value < 0:
        return _UNKNOWN
    if value < 1024:
        return f"{value:.0f} B"
    power = min(int(math.log2(value)) // 10, len(_BINARY))
    return f"{value / 1024**power:.1f} {_BINARY[power - 1]}"


def rate_text(value: float | None) -> str:
    """A number per second with as many digits as matter; a dash for None."""
    if value is None:
        return _UNKNOWN
    return f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.1f}"


def percent_text(value: float | None) -> str:
    """12 %; a dash for None."""
    return _UNKNOWN if value is None else f"{value * 100:.0f} %"


def limit_text(value: float) -> str:
    """1,048,576 or 0.5: a number of which every digit counts."""
    return f"{value:,.0f}" if value.is_integer() else f"{value:,}"


def value_text(value: float) -> str:
    """1,048,576 or 0.0123457: a whole number with all of its digits below a quadrillion, others with six."""
    return f"{value:,.0f}" if abs(value) < 1e15 and value.is_integer() else f"{value:,.6g}"


def time_text(value_ms: int | None) -> str:
    """2026-11-23 20:15:00 UTC; a dash for None and for times before 1970."""
    if value_ms is None or value_ms < 0:
        return _UNKNOWN
    try:
        moment = datetime.fromtimestamp(value_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{value_ms} ms after 1970"
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def duration_text(value_ms: float | None) -> str:
    """250 ms, 12 s, 5 min, 3.2 h, 7 days; a dash for None."""
    if value_ms is None:
        return _UNKNOWN
    for limit, size, unit in ((1000, 1, "ms"), (120, 1000, "s"), (120, 60_000, "min"), (48, 3_600_000, "h")):
        if abs(value_ms) / size < limit:
            shown = value_ms / size
            return f"{shown:.0f} {unit}" if unit != "h" else f"{shown:.1f} {unit}"
    return f"{value_ms / 86_400_000:,.0f} days"


def latency_text(value_s: float | None) -> str:
    """25 µs, 2.5 ms, 1.2 s; a dash for None."""
    if value_s is None:
        return _UNKNOWN
    if value_s < 0.001:
        return f"{value_s * 1_000_000:.0f} µs"
    return f"{value_s * 1000:.3g} ms" if value_s < 1 else f"{value_s:,.1f} s"


def part(name: Any) -> str:
    """A name as one part of a path."""
    return quote(str(name), safe="")


ENVIRONMENT: Final = Environment(
    loader=PackageLoader("barnabas.console"),
    auto_reload=False,
    autoescape=select_autoescape(default=True),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENVIRONMENT.filters.update(
    count=count_text,
    bytes=bytes_text,
    rate=rate_text,
    limit=limit_text,
    value=value_text,
    percent=percent_text,
    time=time_text,
    duration=duration_text,
    latency=latency_text,
    part=part,
)


def compile_templates() -> None:
    """Compile every template, so that no page is slower when it is asked for the first time."""
    for name in ENVIRONMENT.list_templates():
        ENVIRONMENT.get_template(name)
