"""The summary that a job prints at its end."""

from __future__ import annotations

from barnabas.pipeline.jobs.summary import Summary


def test_a_summary_is_one_line_and_its_details() -> None:
    summary = Summary("archive", 12_000, 3_400_000, 7, 2.0, {"topics": 2, "ratio": 0.5, "to": "/archive"})
    assert summary.lines() == [
        "archive: 12,000 records, 3,400,000 bytes, 7 files in 2.0 s (6,000 records/s)",
        "  topics: 2",
        "  ratio: 0.500",
        "  to: /archive",
    ]


def test_nothing_done_in_no_time_has_no_rate() -> None:
    assert Summary("audit", 0, 0, 0, 0.0).lines() == ["audit: 0 records, 0 bytes, 0 files in 0.0 s"]


def test_one_of_a_thing_is_said_in_the_singular() -> None:
    assert Summary("archive", 1, 1, 1, 0.0).lines() == ["archive: 1 record, 1 byte, 1 file in 0.0 s"]


def test_programs_read_plain_numbers() -> None:
    assert Summary("audit", 1, 2, 3, 0.12345, {"bad": 0}).as_json() == {
        "job": "audit",
        "records": 1,
        "bytes": 2,
        "files": 3,
        "seconds": 0.123,
        "bad": 0,
    }
