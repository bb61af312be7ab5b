"""Pages of `barnabas console` on a broker with many partitions and groups: how long each takes, and the memory.

    python -m benchmarks.console [--partitions N] [--groups N]

    answer, ms     from the request to the last byte of the page, one request at a time; a round asks for every page
    page, KiB      the size of the page

The last line is the resident memory of the console after the last round. One topic has a tenth of the partitions, the
others have up to 100 each; one group has committed offsets in all partitions of the largest topic.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

from barnabas.clients.admin.admin import Admin
from barnabas.clients.config import AdminConfig, ProducerConfig
from barnabas.clients.group_offsets import CommittedOffset
from barnabas.clients.producer.producer import Producer
from barnabas.protocol.topic_partition import TopicPartition
from benchmarks.brokers.system import Barnabas, free_port, rss_mib_of
from benchmarks.runs.result_files import write_result
from benchmarks.runs.side_by_side import Samples, render_samples, say, side_by_side_options

PARTITIONS_OF_A_TOPIC = 100
RECORDS_PER_PARTITION = 10
PAGES = (
    "/",
    "/topics",
    "/topics?sort=size&order=desc",
    "/topics/wide",
    "/topics/wide/records",
    "/topics/wide/records?partition=all",
    "/topics/wide/settings",
    "/topics/wide/groups",
    "/topics/t0/groups",
    "/groups",
    "/groups?search=group-99",
    "/groups/wide",
    "/groups/group-1",
    "/transactions",
    "/settings",
)
READY_SECONDS_MAX = 30.0

COLUMNS = (
    ("answer, ms", "seconds", 1000.0, "{:.0f}"),
    ("page, KiB", "bytes", 1 / 1024, "{:.0f}"),
)


def main() -> int:
    """Measure all rounds, print the table and write the JSON file."""
    parser = side_by_side_options("console", __doc__)
    parser.add_argument("--partitions", type=int, default=10_000, metavar="N", help="partitions of all topics")
    parser.add_argument("--groups", type=int, default=1000, metavar="N", help="groups with committed offsets")
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix="barnabas-bench-", dir=options.directory))
    samples: Samples = {page: [] for page in PAGES}
    try:
        with Barnabas(options.set).start(home) as broker:
            bootstrap = f"{broker.host}:{broker.port}"
            say(f"creating {options.partitions:,} partitions and {options.groups:,} groups")
            asyncio.run(_fill(bootstrap, options.partitions, options.groups))
            with _console(bootstrap, home / "console.log") as (pid, port):
                for number in range(options.rounds):
                    say(f"round {number + 1} of {options.rounds}")
                    for page in PAGES:
                        seconds, size = _ask(port, page)
                        samples[page].append({"seconds": seconds, "bytes": size})
                resident = rss_mib_of(pid)
    finally:
        shutil.rmtree(home)
    print(render_samples(samples, COLUMNS))
    print(f"memory of the console: {resident:.0f} MiB")
    write_result(options.json, "benchmarks.console", options, samples)
    return 0


async def _fill(bootstrap: str, partitions: int, groups: int) -> None:
    wide = partitions // 10
    async with Admin(AdminConfig(bootstrap=bootstrap, request_timeout_ms=120_000)) as admin:
        await admin.create_topic("wide", partitions=wide)
        left = partitions - wide
        names: list[str] = []
        while left:
            names.append(f"t{len(names)}")
            count = min(left, PARTITIONS_OF_A_TOPIC)
            await admin.create_topic(names[-1], partitions=count)
            left -= count
        async with Producer(ProducerConfig(bootstrap=bootstrap)) as producer:
            for number in range(wide * RECORDS_PER_PARTITION):
                await producer.send("wide", b"x" * 100, partition=number % wide)
        everywhere = {TopicPartition("wide", number): CommittedOffset(1) for number in range(wide)}
        await admin.set_group_offsets("wide", everywhere)
        for number in range(groups - 1):
            topic = names[number % len(names)]
            offsets = {TopicPartition(topic, partition): CommittedOffset(0) for partition in range(10)}
            await admin.set_group_offsets(f"group-{number}", offsets)


@contextmanager
def _console(bootstrap: str, log: Path) -> Iterator[tuple[int, int]]:
    port = free_port()
    command = [sys.executable, "-m", "barnabas", "console"]
    command += ["--bootstrap", bootstrap, "--listen", f"127.0.0.1:{port}"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        give_up = time.monotonic() + READY_SECONDS_MAX
        while not re.search(rb"console of ", log.read_bytes()):
            if process.poll() is not None or time.monotonic() > give_up:
                raise RuntimeError(f"the console does not start: {log.read_text()}")
            time.sleep(0.1)
        yield process.pid, port
    finally:
        process.terminate()
        process.wait()


def _ask(port: int, page: str) -> tuple[float, int]:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    began = time.perf_counter()
    connection.request("GET", page)
    answer = connection.getresponse()
    size = len(answer.read())
    seconds = time.perf_counter() - began
    connection.close()
    if answer.status != 200:
        raise RuntimeError(f"{page} was answered with {answer.status}")
    return seconds, size


if __name__ == "__main__":
    sys.exit(main())
