"""The benchmarks of clients and commands: each sends, and gets, all the records that it is measured by."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from benchmarks import client, commands
from benchmarks.brokers.system import Barnabas
from benchmarks.requests.kafka_dialect import KafkaDialect
from benchmarks.runs import clients


async def test_every_client_library_produces_and_consumes_all_records(tmp_path: Path) -> None:
    dialect = KafkaDialect()
    with Barnabas([]).start(tmp_path) as running, running.connect() as connection:
        bootstrap = f"{running.host}:{running.port}"
        for number, produce in enumerate(clients.PRODUCERS.values()):
            dialect.create(connection, f"t{number}")
            await produce(clients.Clock(), bootstrap, f"t{number}", 300, bytes(100))
            assert dialect.end_offset(connection, f"t{number}") == 301
        for consume in clients.CONSUMERS.values():
            assert await consume(bootstrap, "t0", 301) == 301


def test_lines_of_clients_are_measured_in_processes_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--rounds", "1", "--records", "300", "--directory", str(tmp_path), "--json", str(tmp_path / "result")]
    assert client.main([*options, "--lines", "produce by Barnabas"]) == 0
    assert "| Barnabas: produce by Barnabas | **" in capsys.readouterr().out
    ((columns,),) = json.loads((tmp_path / "result").read_text())["samples"].values()
    assert columns["client_us_per_record"] > 0


def test_commands_are_measured_until_all_their_lines_are_stored(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    options = ["--rounds", "1", "--records", "300", "--directory", str(tmp_path), "--json", str(result)]
    assert commands.main([*options, "--lines", "produce"]) == 0
    samples = json.loads(result.read_text())["samples"]
    programs = ["barnabas"] if shutil.which("kcat") is None else ["barnabas", "kcat"]
    assert list(samples) == [f"Barnabas: {work} by {name}" for work in commands.WORK[:2] for name in programs]
    assert all(columns["seconds"] > 0 for (columns,) in samples.values())


def test_a_command_that_stores_too_little_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "command_of", lambda *_, **__: ["true"])
    with pytest.raises(RuntimeError, match="0 of 3 lines are stored"):
        commands.main(["--rounds", "1", "--records", "3", "--directory", str(tmp_path), "--lines", "by barnabas"])
