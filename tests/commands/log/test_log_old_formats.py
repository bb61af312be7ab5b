"""`barnabas log` on a directory that brokers before Kafka 0.11 wrote: dump, verify, reindex, truncate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from barnabas.commands.main import main
from barnabas.protocol.records.legacy.messages import LegacyMessage, iter_legacy_messages
from tests.support.storage.bench import LogBench, read_records
from tests.support.storage.legacy import message_sets
from tests.support.storage.records import plain

SETS = message_sets()
OLD = b"".join(each.data for each in SETS.values())
RECORDS = [record for each in SETS.values() for record in each.records]


@pytest.fixture
def bench(tmp_path: Path) -> LogBench:
    """A partition of all formats, cleanly closed."""
    bench = LogBench(tmp_path)
    bench.log_path().write_bytes(OLD + plain(5, base_offset=30))
    bench.close(bench.open())
    return bench


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["log", *map(str, arguments)])


def dumped(*arguments: object) -> list[dict[str, object]]:
    result = run("dump", "--json", *arguments)
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_dump_shows_messages_wrappers_and_their_contents(bench: LogBench) -> None:
    lines = dumped("--data", bench.log_path())
    messages = [line for line in lines if line["type"] == "message"]
    assert [line["crc"] for line in messages] == [each.crc for each in iter_legacy_messages(OLD)]
    assert [line["position"] for line in messages[:2]] == [0, 56]
    assert all(line["isvalid"] for line in messages)
    records = [line for line in lines if line["type"] == "record"]
    assert [line["offset"] for line in records] == list(range(35))
    assert [line["payload"] for line in records[:30]] == [
        None if record.value is None else record.value.decode() for record in RECORDS
    ]
    assert all(line["isValid"] for line in records[:30])


def test_a_dump_begins_at_an_offset_within_a_wrapper_and_ends_at_its_limit(bench: LogBench) -> None:
    lines = dumped("--records", "--from-offset", "16", "--max-records", "3", bench.log_path())
    assert [line["offset"] for line in lines if line["type"] == "record"] == [16, 17, 18]


def test_a_damaged_message_is_shown_as_not_valid_and_its_records_are_an_error(bench: LogBench) -> None:
    content = bytearray(bench.log_path().read_bytes())
    content[len(OLD) - 1] ^= 1
    bench.log_path().write_bytes(content)
    result = run("dump", "--data", bench.log_path())
    assert result.exit_code == 1
    assert "offset: 29 " in result.stdout
    assert result.stdout.count("isvalid: false") == 1
    assert "records cannot be read" in result.stderr


def test_verify_finds_nothing_in_whole_messages_and_the_damage_in_others(bench: LogBench) -> None:
    assert run("verify", bench.directory).exit_code == 0
    good = bench.log_path().read_bytes()
    wrapper = LegacyMessage(SETS["v1-gzip"].data)
    position = good.index(SETS["v1-gzip"].data)
    for damage in (position + wrapper.size_bytes - 1, position + 20):
        content = bytearray(good)
        content[damage] ^= 1
        bench.log_path().write_bytes(content)
        result = run("verify", bench.directory)
        assert result.exit_code == 1
        assert f"position {position}: message of offset 17: stored crc" in result.stdout


def test_reindex_writes_the_indexes_that_recovery_wrote(bench: LogBench) -> None:
    before = {path.name: path.read_bytes() for path in bench.directory.glob("*index")}
    (bench.directory / f"{0:020d}.index").write_bytes(b"")
    assert run("reindex", bench.directory).exit_code == 0
    assert {path.name: path.read_bytes() for path in bench.directory.glob("*index")} == before


@pytest.mark.parametrize(("to_offset", "end"), [(14, 14), (16, 15), (29, 27), (32, 30)])
def test_truncate_removes_a_wrapper_as_a_whole(bench: LogBench, to_offset: int, end: int) -> None:
    result = run("truncate", bench.directory, "--to-offset", to_offset, "--yes")
    assert result.exit_code == 0, result.output
    log = bench.open(clean=False)
    assert log.log_end_offset == end
    assert read_records(log) == RECORDS[:end]
