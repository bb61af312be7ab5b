"""The open-loop benchmarks: every record of the clock is stored, and received by each consumer."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.protocol.compression import Codec
from barnabas.protocol.records import RecordBatch, read_records
from benchmarks import end_to_end, many
from benchmarks.brokers.system import Barnabas
from benchmarks.requests.frames import create_topic
from benchmarks.requests.kafka_dialect import KafkaDialect
from benchmarks.requests.records import build_batch
from benchmarks.runs.programs import Programs
from benchmarks.runs.side_by_side import Round
from benchmarks.runs.streams import StreamLine, StreamRun

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="the load generator is written in C: no compiler here"
)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Round]:
    place = tmp_path_factory.mktemp("broker")
    system = Barnabas([])
    with system.start(place) as running:
        yield Round(system, running, place, 0.1)


def test_end_to_end_measures_and_stores_its_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--rounds", "1", "--seconds", "0.1", "--lines", "8 consumers", "--directory", str(tmp_path / "work")]
    assert end_to_end.main([*arguments, "--json", str(tmp_path / "result.json")]) == 0
    assert "| Barnabas: 2,000 records/s, 8 consumers | **" in capsys.readouterr().out
    samples = json.loads((tmp_path / "result.json").read_text())["samples"]
    (columns,) = samples["Barnabas: 2,000 records/s, 8 consumers"]
    assert 0 < columns["p50_us"] <= columns["p99_us"] <= columns["p999_us"] <= columns["max_us"]
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.parametrize("with_sessions", [False, True])
def test_consumers_receive_the_records_of_all_active_partitions(
    programs: Programs, broker: Round, with_sessions: bool
) -> None:
    line = StreamLine("spread", 1_000, 2, partitions=20, active=3, with_sessions=with_sessions)
    with broker.running.connect() as connection:
        run = StreamRun(broker, programs, line, create_topic(connection, f"spread-{with_sessions}", 20))
    for _ in range(2):  # the second run starts at the end of the first one's records
        assert run.measure(0.2)["fetches_per_record"] > 0


def test_the_client_refuses_records_that_it_did_not_send(programs: Programs, broker: Round) -> None:
    line = StreamLine("foreign", 100, 1)
    dialect = KafkaDialect()
    with broker.running.connect() as connection:
        run = StreamRun(broker, programs, line, create_topic(connection, "foreign", 1))
        frames = broker.directory / "frames"
        frames.write_bytes(dialect.produce("foreign", build_batch(1, 10).data))
        before = dialect.end_offset(connection, "foreign")
        programs.load(broker.running.host, broker.running.port, frames, connections=1, depth=1, requests=5)
    script = broker.directory / "foreign-script"
    script.write_bytes(run.script([before]))
    with pytest.raises(RuntimeError, match="a record that was not sent: offset 0"):
        programs.stream(
            broker.running.host, broker.running.port, script, rate=100, seconds=1, consumers=1, with_sessions=False
        )


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4, Codec.ZSTD])
def test_small_batches_are_compressed_and_readable(codec: Codec) -> None:
    data = many.small_batch(codec).data
    view = RecordBatch(bytearray(data))
    view.ensure_valid()
    assert view.codec is codec
    assert len(read_records(view)) == many.RECORDS_OF_SMALL_BATCH
    assert (len(data) < len(many.small_batch(Codec.NONE).data)) is (codec is not Codec.NONE)


def test_requests_of_many_partitions_cover_the_active_ones_in_turn(programs: Programs, broker: Round) -> None:
    line = many.LoadLine("spread", 2, build_batch(1, 100), partitions=12, active=6, per_request=3)
    assert line.requests() == [[0, 2, 4], [6, 8, 10]]
    with broker.running.connect() as connection:
        run = many.LoadRun(broker, programs, line, create_topic(connection, "many-12", 12))
    columns = run.measure(0.1)
    assert columns["loaded_records_per_s"] == pytest.approx(3 * columns["requests_per_s"])
