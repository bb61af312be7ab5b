"""Planned switches from a broker to its standby: how long clients wait, with many partitions.

    python -m benchmarks.switch [--partitions N]

    writes paused       the longest time between two acknowledgements that one producer got, which sends one record at
                        a time to all partitions in turn, has both addresses, and goes on through the switch
    promote             the run time of `barnabas standby promote --planned`
    took over           the standby's own figure: from the command's arrival to the open listeners

Both sides and the producer run on this machine, on one disk.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from barnabas.clients.admin.admin import Admin
from barnabas.clients.config import AdminConfig, ProducerConfig
from barnabas.clients.producer.producer import Producer
from benchmarks.brokers.system import Barnabas, free_port
from benchmarks.runs.result_files import write_result
from benchmarks.runs.side_by_side import Columns, Samples, render_samples, say, say_columns, side_by_side_options

TOPICS = 10
READY_SECONDS_MAX = 120.0
AROUND_SECONDS = 2.0
"""How long the producer sends before and after the switch."""

COLUMNS = (
    ("writes paused, s", "paused_s", 1.0, "{:.2f}"),
    ("promote, s", "promote_s", 1.0, "{:.2f}"),
    ("took over, s", "took_over_s", 1.0, "{:.2f}"),
)


def main() -> int:
    """Measure all rounds, print the table and write the JSON file."""
    parser = side_by_side_options("switch", __doc__)
    parser.add_argument("--partitions", type=int, default=1000, metavar="N", help="partitions of all topics")
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix="barnabas-bench-", dir=options.directory))
    line = f"{options.partitions:,} partitions"
    samples: Samples = {line: []}
    try:
        for number in range(options.rounds):
            say(f"round {number + 1} of {options.rounds}")
            directory = home / str(number)
            directory.mkdir()
            columns = asyncio.run(_switch(directory, options.partitions, options.set))
            say_columns(line, columns)
            samples[line].append(columns)
            shutil.rmtree(directory)
    finally:
        shutil.rmtree(home)
    print(render_samples(samples, COLUMNS))
    write_result(options.json, "benchmarks.switch", options, samples)
    return 0


async def _switch(directory: Path, partitions: int, settings: list[str]) -> Columns:
    per_topic = partitions // TOPICS
    with Barnabas(settings).start(directory) as broker:
        active = f"{broker.host}:{broker.port}"
        async with Admin(AdminConfig(bootstrap=active)) as admin:
            for number in range(TOPICS):
                await admin.create_topic(f"t{number}", partitions=per_topic)
        port, copy = free_port(), directory / "standby"
        with _standby(active, port, copy, directory / "standby.log", settings):
            await asyncio.to_thread(_until_caught_up, copy, TOPICS * per_topic)
            pauses: list[float] = []
            stop = asyncio.Event()
            sending = asyncio.create_task(_send(f"{active},{broker.host}:{port}", per_topic, pauses, stop))
            await asyncio.sleep(AROUND_SECONDS)
            began = time.monotonic()
            answer = await asyncio.to_thread(_command, "promote", copy, "--planned")
            promote_seconds = time.monotonic() - began
            await asyncio.sleep(AROUND_SECONDS)
            stop.set()
            await sending
            return {"paused_s": max(pauses), "promote_s": promote_seconds, "took_over_s": float(answer["seconds"])}


async def _send(bootstrap: str, per_topic: int, pauses: list[float], stop: asyncio.Event) -> None:
    async with Producer(ProducerConfig(bootstrap=bootstrap)) as producer:
        last, number = time.monotonic(), 0
        while not stop.is_set():
            topic, partition = number % TOPICS, number // TOPICS % per_topic
            await producer.send_and_wait(f"t{topic}", b"x" * 100, partition=partition)
            number += 1
            now = time.monotonic()
            pauses.append(now - last)
            last = now


@contextmanager
def _standby(active: str, port: int, copy: Path, log: Path, settings: list[str]) -> Iterator[None]:
    command = [sys.executable, "-m", "barnabas", "standby", "--of", active, "--data", str(copy)]
    for setting in (f"listeners=PLAINTEXT://127.0.0.1:{port}", "metrics.listener=", *settings):
        command += ["--set", setting]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _until_caught_up(copy: Path, partitions: int) -> None:
    give_up = time.monotonic() + READY_SECONDS_MAX
    while True:
        try:
            status = _command("status", copy)
            if status["state"] == "caught_up" and len(status["partitions"]) >= partitions:
                return
        except subprocess.CalledProcessError:  # it does not answer yet
            pass
        if time.monotonic() > give_up:
            raise RuntimeError(f"the standby has not caught up within {READY_SECONDS_MAX:.0f} s")
        time.sleep(0.2)


def _command(name: str, copy: Path, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "barnabas", "standby", name, "--data", str(copy), "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


if __name__ == "__main__":
    sys.exit(main())
