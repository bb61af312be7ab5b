"""The demo against a real broker, with fewer rows than `make demo` takes."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import demo.run
from barnabas.clients.records import ConsumerRecord
from demo.__main__ import main
from demo.traffic import consume_flights, produce_flights

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_demo_gets_every_flight_back_over_a_restart(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "demo", "--rows", "20000", "--segment-bytes", "65536"],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=100,
    )

    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("20,000 records with") == 2
    assert result.stdout.count(" 0 differences") == 2
    assert "NOT OK" not in result.stdout
    segments = [int(count) for count in re.findall(r"flights-\d\s+│\s+(\d+)", result.stdout)]
    assert len(segments) == 4, result.stdout
    assert min(segments) > 1
    assert list(tmp_path.iterdir()) == []


def test_the_demo_fails_when_one_record_comes_back_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def consume_one_changed(
        bootstrap: str, topic: str, due: int, take: Callable[[ConsumerRecord], None], report: Callable[[int], None]
    ) -> None:
        def take_changed(record: ConsumerRecord) -> None:
            take(record._replace(value=b"forged") if (record.partition, record.offset) == (1, 5) else record)

        await consume_flights(bootstrap, topic, due, take_changed, report)

    monkeypatch.setattr(demo.run, "consume_flights", consume_one_changed)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.chdir(ROOT)

    result = CliRunner().invoke(main, ["--rows", "500"])

    assert result.exit_code == 1, result.output
    assert "has the value b'forged'" in result.output
    assert len(list(tmp_path.glob("barnabas-demo-*"))) == 1, "the directory of a failed run is kept"


def test_the_demo_stops_waiting_for_records_that_do_not_come(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("demo.traffic.STALL_DEADLINE_S", 0.5)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.chdir(ROOT)

    async def produce_all_but_one(bootstrap: str, topic: str, flights: list[object], *rest: object) -> None:
        await produce_flights(bootstrap, topic, flights[:-1], *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(demo.run, "produce_flights", produce_all_but_one)

    result = CliRunner().invoke(main, ["--rows", "300"])

    assert result.exit_code == 1, result.output
    assert "received 299 of 300 records" in result.output
