"""HTML pages of the jobs: complete, self-contained, and safe for any topic name or key."""

from __future__ import annotations

import html
import json
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import Any

import pytest

from barnabas.pipeline.jobs.stats_page import class_text, stats_page, time_labels
from barnabas.pipeline.jobs.stats_report import StatsReport, bucket_for, key_text
from barnabas.pipeline.jobs.whatif_report import TopicEffect, WhatIfReport, whatif_page
from barnabas.pipeline.report.charts import Chart, bytes_text
from barnabas.pipeline.report.page import Section, Table, render_page

DAY = datetime(2024, 2, 1, tzinfo=UTC)
EVIL = "<script>alert(1)</script>&\"'"


class Seen(HTMLParser):
    """Collected tags, the resources they would load, and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loads: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loads += [f"{tag} {name}={value}" for name, value in attrs if name in ("src", "href", "xlink:href")]

    def handle_data(self, data: str) -> None:
        self.text += data


def stats_report(topic: str = "orders") -> StatsReport:
    partitions = [
        {
            "topic": topic,
            "partition": number,
            "records": 1000,
            "tombstones": 3,
            "bytes": 123_456,
            "first_offset": 0,
            "last_offset": 999,
            "first_timestamp": DAY,
            "last_timestamp": DAY + timedelta(days=20),
            "keys": 40,
            "keyless": 0,
            "superseded_records": 960,
            "superseded_bytes": 120_000,
        }
        for number in range(2)
    ]
    return StatsReport(
        place="127.0.0.1:9092",
        seconds=1.5,
        bucket_seconds=bucket_for(partitions),
        partitions=partitions,
        top_keys=[{"topic": topic, "key": EVIL, "records": 9, "tombstones": 0, "bytes": 900, "share": 0.25}],
        key_histogram=[{"topic": topic, "class": n, "keys": 10 * n, "records": 5, "bytes": 7} for n in range(1, 8)],
        ages=[{"topic": topic, "bucket": DAY + timedelta(days=n), "records": n, "bytes": 1000 * n} for n in range(21)],
        sizes=[{"topic": topic, "class": n, "records": 10 * n, "bytes": 99} for n in range(3, 12)],
        batches=[
            {"topic": topic, "codec": codec, "class": n, "batches": n, "records": 5, "bytes": 70}
            for codec in ("lz4", "none")
            for n in range(10, 15)
        ],
        dirty=[{"topic": topic, "partition": 0, "dirty_ratio": 0.75}],
    )


def whatif_report(*names: str) -> WhatIfReport:
    return WhatIfReport(
        settings="retention.ms=86400000",
        now_ms=int(DAY.timestamp() * 1000),
        days=30,
        seconds=1.0,
        topics=[
            TopicEffect(name, 10, 1 << 30, 4, 1 << 28, 1 << 27, 1 << 26, 500, 7, 900, is_due=True) for name in names
        ],
        freed={(name, step): 1 << 24 for name in names for step in range(0, 31, 3)},
    )


def charts_of(page: str) -> dict[str, dict[str, Any]]:
    """Return the data of each chart by its title."""
    found = re.findall(
        r"<figcaption>(.*?)</figcaption>.*?<script type=\"application/json\">(.*?)</script>", page, re.DOTALL
    )
    return {html.unescape(title): json.loads(data) for title, data in found}


@pytest.mark.parametrize(
    "page", [stats_page(stats_report()), whatif_page(whatif_report("a", "b"))], ids=["stats", "whatif"]
)
def test_a_page_loads_nothing_and_runs_only_its_own_script(page: str) -> None:
    seen = Seen(page)

    assert seen.loads == []
    assert seen.tags.count("script") == len(charts_of(page)) + 1
    assert not any(word in page for word in ("@import", "url("))
    assert charts_of(page)


def test_what_topics_and_keys_are_called_stays_text() -> None:
    for evil, harmless in (
        (stats_page(stats_report(EVIL)), stats_page(stats_report())),
        (whatif_page(whatif_report(EVIL, "b")), whatif_page(whatif_report("a", "b"))),
    ):
        seen = Seen(evil)
        assert seen.tags.count("script") == Seen(harmless).tags.count("script")
        assert EVIL in seen.text
    assert EVIL in charts_of(whatif_page(whatif_report(EVIL, "b")))["Bytes by topic"]["labels"]


def test_the_page_of_stats_has_the_four_charts_of_a_topic_and_its_numbers() -> None:
    page = stats_page(stats_report())

    charts = charts_of(page)
    for title in ("Age: bytes by time", "Size: records by bytes", "Keys: number of keys", "Batches by size"):
        assert any(each.startswith(title) for each in charts), title
    assert charts["Batches by size on disk and compression"]["stacked"] is True
    assert "123,456" in page
    assert "0.750" in page
    assert '<td><span class="date">2024-02-01</span> 00:00</td>' in page
    assert "Age: bytes by time of the record (each bar 1 day)" in charts
    assert page.count("<details><summary>Numbers</summary><div") == 4


def test_the_page_of_whatif_sums_up_small_topics_and_tells_bytes_by_topic() -> None:
    names = [f"topic-{number}" for number in range(20)]
    page = whatif_page(whatif_report(*names))

    charts = charts_of(page)
    lines = charts["Bytes freed, cumulative"]
    assert [each["name"] for each in lines["series"]][-1] == "all others"
    assert lines["line"] is True
    assert all(f"<td>{name}</td>" in page for name in names)
    assert charts["Bytes by topic"]["labels"][0] == "topic-0"


def test_a_sentence_replaces_a_chart_of_nothing_or_of_one_bar() -> None:
    assert Chart("Ages", [], {"x": []}).sentence() == "Ages: nothing to show."
    one = Chart("Ages", ["12:00"], {"records": [7], "others": [None]})
    assert one.sentence() == "Ages: records 7, others -, all at 12:00."
    assert charts_of(render_page("t", {}, [Section("s", "", (one,))])) == {}
    assert Chart("Ages", ["a", "b"], {"x": [1, 2]}).sentence() is None


def test_bars_have_labels_that_tell_them_apart() -> None:
    def labels(bucket_seconds: int, count: int = 60) -> list[str]:
        found = time_labels([DAY + timedelta(seconds=bucket_seconds * each) for each in range(count)], bucket_seconds)
        assert len(set(found)) == count
        return found

    assert labels(1)[:2] == ["00:00:00", "00:00:01"]
    assert labels(60)[1] == "00:01"
    assert labels(3600)[-1] == "02-03 11:00"
    assert labels(7 * 24 * 3600)[1] == "2024-02-08"


def test_tables_set_numbers_apart_and_show_nothing_as_a_dash() -> None:
    page = render_page("t", {}, [Section("s", "", (Table(("a", "b"), (("x", 1234), ("y", None))),))])

    assert '<td>x</td><td class="number">1,234</td>' in page
    assert '<td class="number">-</td>' in page


def test_keys_are_shown_as_text_or_hexadecimal_and_never_too_long() -> None:
    assert key_text(b"N14228") == "N14228"
    assert key_text("Zürich".encode()) == "Zürich"
    assert key_text(b"") == ""
    assert key_text(b"\x00\x01") == "0x0001"
    assert key_text(b"\xff") == "0xff"
    assert key_text(b"a\nb") == "0x610a62"
    assert len(key_text(b"x" * 500)) == 80


def test_a_time_bucket_is_the_least_usual_one_that_gives_sixty_at_most() -> None:
    def bucket(seconds: float) -> int:
        return bucket_for([{"first_timestamp": DAY, "last_timestamp": DAY + timedelta(seconds=seconds)}])

    assert bucket_for([]) == 1
    assert bucket(0) == 1
    assert bucket(61) == 10
    assert bucket(3600) == 60
    assert bucket(365 * 24 * 3600) == 7 * 24 * 3600
    assert bucket(100 * 365 * 24 * 3600) == 365 * 24 * 3600


def test_classes_and_bytes_are_written_by_their_least() -> None:
    assert [class_text(number, bytes_text) for number in (0, 1, 7, 11)] == ["0 B", "1 B+", "64 B+", "1.0 KiB+"]
    assert bytes_text(5 * 1024**4 * 1024) == "5120.0 TiB"
