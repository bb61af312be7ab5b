"""Charts for the pages of stats and whatif, as inline SVG without scripts.

Drawn by pygal. Topics and keys are passed to it as text, which it escapes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from xml.etree.ElementTree import Element

import pygal
from pygal.style import Style

# For its map plugins pygal adds an old-style finder to sys.meta_path. On Python 3.11 every later import of a missing
# module then warns, for example Spark's attempt to import pyspark_connect.
sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder) is not pygal.PluginImportFixer]

WIDTH, HEIGHT = 860, 320
_MAX_LABELS = 16

_STYLE = Style(
    background="transparent",
    plot_background="transparent",
    foreground="#444",
    foreground_strong="#222",
    foreground_subtle="#bbb",
    guide_stroke_color="#ddd",
    major_guide_stroke_color="#bbb",
    font_family="system-ui, sans-serif",
    label_font_size=12,
    major_label_font_size=12,
    legend_font_size=13,
    title_font_size=15,
    opacity=".85",
    colors=("#2563a8", "#d9822b", "#3d9970", "#a8324a", "#7a5bb0", "#8a8a34", "#3aa6b9", "#999999"),
)

Series = Mapping[str, Sequence[float | None]]
"""Name -> one value per label."""


def bar_chart(
    title: str,
    labels: Sequence[str],
    series: Series,
    *,
    show: Callable[[float], str],
    stacked: bool = False,
    horizontal: bool = False,
) -> str:
    """Return an `<svg>` element. `show` formats a value for the axis."""
    kinds = {
        (False, False): pygal.Bar,
        (True, False): pygal.StackedBar,
        (False, True): pygal.HorizontalBar,
        (True, True): pygal.HorizontalStackedBar,
    }
    height = max(HEIGHT, 90 + 28 * len(labels)) if horizontal else HEIGHT
    return _render(kinds[stacked, horizontal], title, labels, series, show, height=height, thin=not horizontal)


def line_chart(title: str, labels: Sequence[str], series: Series, *, show: Callable[[float], str]) -> str:
    """Return an `<svg>` element with one line per series."""
    return _render(pygal.Line, title, labels, series, show, show_dots=False, stroke_style={"width": 2})


def bytes_text(value: float) -> str:
    """Format a size: `1.5 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024 or unit == "TiB":
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError(value)


def count_text(value: float) -> str:
    """Format a count: `12,000`."""
    return f"{value:,.0f}"


def _render(
    kind: type[pygal.Graph],
    title: str,
    labels: Sequence[str],
    series: Series,
    show: Callable[[float], str],
    *,
    height: int = HEIGHT,
    thin: bool = True,
    **more: object,
) -> str:
    chart = kind(
        style=_STYLE,
        js=[],
        disable_xml_declaration=True,
        width=WIDTH,
        height=height,
        title=title,
        show_legend=len(series) > 1,
        legend_at_bottom=True,
        truncate_label=-1,
        truncate_legend=-1,
        no_data_text="nothing to show",
        value_formatter=show,
        x_label_rotation=30 if thin and any(len(label) > 6 for label in labels) else 0,
        show_minor_x_labels=False,
        **more,
    )
    chart.x_labels = list(labels)
    if thin:
        every = -(-len(labels) // _MAX_LABELS) or 1
        chart.x_labels_major = list(labels[::every])
    for name, values in series.items():
        chart.add(name, list(values))
    chart.add_xml_filter(_without_scripts)
    drawn: str = chart.render(is_unicode=True)
    return drawn


def _without_scripts(root: Element) -> Element:
    """Remove pygal's script with the chart's configuration; the scripts that read it are not included."""
    for parent in list(root.iter()):
        # str: the tag of a comment is a function.
        for child in [child for child in parent if str(child.tag).endswith("script")]:
            parent.remove(child)
    return root
