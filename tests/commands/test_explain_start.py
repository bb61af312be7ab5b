"""`barnabas explain start`: before a start, what it would do; after it, what it did."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from barnabas import Producer, ProducerConfig
from barnabas.commands.main import main
from barnabas.explanation.start_findings import Stop, stop_of
from barnabas.protocol.messages.cluster.explain_start import StartedDirectory
from tests.support.daemon import Daemon, start_daemon

TORN = b"\0" * 20


def explain(*arguments: str) -> Result:
    result = CliRunner().invoke(main, ["explain", "start", *arguments])
    assert result.exit_code == 0, result.output
    return result


def as_json(*arguments: str) -> Any:
    return json.loads(explain(*arguments, "--json").stdout)


def fill(daemon: Daemon) -> None:
    async def produce() -> None:
        async with Producer(ProducerConfig(bootstrap=daemon.bootstrap)) as producer:
            for _ in range(3):
                await producer.send_and_wait("orders", b"x", partition=0)

    daemon.create_topic("orders", partitions=1)
    asyncio.run(produce())


def test_a_start_after_a_kill_does_what_was_said_and_tells_it_afterwards(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon:
        first = as_json("--bootstrap", daemon.bootstrap)
        assert [each["stop"] for each in first["directories"]] == ["no_logs"]
        assert first["recovered_logs"] == 0
        assert first["began_ms"] <= first["loaded_ms"] <= first["ready_ms"]
        fill(daemon)
        daemon.kill()
        segment = daemon.data_directory / "orders-0" / f"{0:020}.log"
        whole = segment.stat().st_size
        with segment.open("ab") as torn:
            torn.write(TORN)

        files = sorted((path, path.stat().st_mtime_ns) for path in daemon.data_directory.rglob("*"))
        said = as_json("--log-dir", str(daemon.data_directory))
        assert sorted((path, path.stat().st_mtime_ns) for path in daemon.data_directory.rglob("*")) == files
        assert said["start"] == "next"
        assert [(each["stop"], each["logs"]) for each in said["directories"]] == [("process_ended", 1)]
        (log,) = said["logs"]
        assert (log["topic"], log["segments"], log["size_bytes"], log["dropped_bytes"]) == (
            "orders",
            1,
            whole + len(TORN),
            len(TORN),
        )
        text = explain("--log-dir", str(daemon.data_directory)).stdout
        assert f"would cut off {len(TORN)} bytes at the first damaged or torn batch" in text
        assert "a start reads 1 log with" in explain("--log-dir", str(daemon.data_directory)).stdout

        daemon.start()
        did = as_json("--bootstrap", daemon.bootstrap)
        assert did["start"] == "last"
        assert [each["stop"] for each in did["directories"]] == ["process_ended"]
        assert (did["recovered_logs"], did["recovered_bytes"]) == (said["recovered_logs"], said["recovered_bytes"])
        (log,) = did["logs"]
        assert (log["size_bytes"], log["dropped_bytes"], log["dropped_segments"]) == (
            whole + len(TORN),
            len(TORN),
            0,
        )
        text = explain("--bootstrap", daemon.bootstrap).stdout
        assert "the machine ran on: the process was killed" in text
        assert f"cut off {len(TORN)} bytes at the first damaged or torn batch" in text

        daemon.stop()
        assert [each["stop"] for each in as_json("--log-dir", str(daemon.data_directory))["directories"]] == ["clean"]
        daemon.start()
        clean = as_json("--bootstrap", daemon.bootstrap)
        assert ([each["stop"] for each in clean["directories"]], clean["recovered_logs"]) == (["clean"], 0)
        assert "no log was recovered" in explain("--bootstrap", daemon.bootstrap).stdout


@pytest.mark.parametrize("position", [0, 10, -1], ids=["offset", "size", "content"])
def test_what_a_recovery_would_cut_off_is_exact_to_the_byte(tmp_path: Path, position: int) -> None:
    async def produce() -> None:
        async with Producer(ProducerConfig(bootstrap=daemon.bootstrap)) as producer:
            for _ in range(40):
                await producer.send_and_wait("orders", b"x" * 400, partition=0)

    with start_daemon(tmp_path) as daemon:
        daemon.create_topic("orders", partitions=1, configs={"segment.bytes": "4096"})
        asyncio.run(produce())
        daemon.kill()
        segments = sorted((daemon.data_directory / "orders-0").glob("*.log"))
        damaged = segments[1]
        content = bytearray(damaged.read_bytes())
        content[position] ^= 1
        damaged.write_bytes(content)
        (said,) = as_json("--log-dir", str(daemon.data_directory))["logs"]
        daemon.start()
        (did,) = as_json("--bootstrap", daemon.bootstrap)["logs"]
    assert said | {"seconds": did["seconds"]} == did
    assert said["dropped_segments"] == len(segments) - 2 > 0


@pytest.mark.parametrize(
    ("had_marker", "changed_ms", "logs", "booted_ms", "stop"),
    [
        (True, 5, 3, 9, Stop.CLEAN),
        (False, 5, 0, 9, Stop.NO_LOGS),
        (False, None, 3, 9, Stop.NO_LOGS),
        (False, 5, 3, 9, Stop.MACHINE_RESTARTED),
        (False, 9, 3, 5, Stop.PROCESS_ENDED),
        (False, 9, 3, None, Stop.UNKNOWN),
    ],
)
def test_how_the_run_before_ended(
    had_marker: bool, changed_ms: int | None, logs: int, booted_ms: int | None, stop: Stop
) -> None:
    assert stop_of(StartedDirectory("/d", had_marker, changed_ms, logs, 0.0), booted_ms) is stop
