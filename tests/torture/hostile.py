"""Mutated requests of real clients, by the million: `python -m tests.torture.hostile --frames 1000000 --seed 1`.

Peers in other processes send mutants to a broker, over many connections, while a modest client produces one record at
a time. The broker must not end, log an error or keep the memory, and each record that it acknowledged must
be there at the end. Prints what the modest client had to wait and how much memory the broker has taken; exits with 1
if something is wrong. A frame that is not answered is given up with its connection: a join or a fetch may wait.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles
from typing import NamedTuple

import uvloop

from tests.support.daemon import Daemon, start_daemon
from tests.support.frames import Mutator, by_api
from tests.support.storage.records import plain
from tests.support.wire import WireClient

PEERS = 2
CONNECTIONS = 64
"""Of each peer; most of the time, some of them wait for an answer that does not come."""
PAUSE_S = 0.005
"""Between two records of the modest client."""
PATIENCE_S = 0.1
HEADER_BYTES = 8
"""API key, version and correlation id, which seven of eight mutants keep."""
CHUNK = 20_000
RSS_GROWTH_BYTES = 192 << 20
TOPIC = "modest"


class Work(NamedTuple):
    """Mutants that one peer sends."""

    host: str
    port: int
    seed: int
    size: int


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture.hostile", description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000, help="number of mutants (default 1,000,000)")
    parser.add_argument("--seed", type=int, default=1, help="the first seed; there are 20,000 mutants of each")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="barnabas-hostile-") as directory:
        with start_daemon(Path(directory) / "broker") as daemon:
            complaints = run(daemon, options.frames, options.seed)
    print("\n".join(complaints) or "nothing is wrong")
    return bool(complaints)


def run(daemon: Daemon, frames: int, seed: int) -> list[str]:
    """Send the mutants; return what is wrong. Prints the totals."""
    chunks = [Work(daemon.host, daemon.port, seed + number, CHUNK) for number in range(-(-frames // CHUNK))]
    outcomes: Counter[str] = Counter()
    waits: list[float] = []
    before = rss_bytes(daemon)
    with WireClient(daemon.host, daemon.port) as client, multiprocessing.get_context("spawn").Pool(PEERS) as peers:
        client.create_topic(TOPIC)
        results = [peers.apply_async(send_all, (work,)) for work in chunks]
        while not all(result.ready() for result in results):
            began = time.perf_counter()
            answer = client.produce(TOPIC, plain(1))
            waits.append(time.perf_counter() - began)
            if answer.error:
                return [f"a record was refused: {answer.error.name}"]
            time.sleep(PAUSE_S)  # the client's rate
        for result in results:
            outcomes.update(result.get())
        there = client.end_offset(TOPIC)
    growth = rss_bytes(daemon) - before
    cuts = quantiles(waits, n=1000)
    print(f"{sum(outcomes.values())} mutants: {', '.join(f'{count} {name}' for name, count in outcomes.most_common())}")
    print(
        f"{len(waits)} records of the modest client: p50 {1000 * cuts[499]:.2f} ms, p99 {1000 * cuts[989]:.2f} ms, "
        f"p99.9 {1000 * cuts[998]:.2f} ms, longest {1000 * max(waits):.1f} ms"
    )
    print(f"memory: {before >> 20} MiB, and {growth >> 20} MiB more at the end")
    complaints = [line for line in daemon.log.splitlines() if " ERROR " in line or line.startswith("Traceback")]
    if there != len(waits):
        complaints.append(f"{len(waits)} records were acknowledged, and {there} are there")
    if growth > RSS_GROWTH_BYTES:
        complaints.append(f"the broker has {growth >> 20} MiB more than before")
    return complaints


def send_all(work: Work) -> Counter[str]:
    """Send the mutants of one seed; return how many were answered, closed and not answered."""
    return uvloop.run(_send_all(work))


async def _send_all(work: Work) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    left = mutants(work.seed, work.size)  # the connections take from it in turn
    await asyncio.gather(*(_send_over_connections(work, left, outcomes) for _ in range(CONNECTIONS)))
    return outcomes


async def _send_over_connections(work: Work, left: Iterator[bytes], outcomes: Counter[str]) -> None:
    """Send mutants over one connection at a time: what is not answered, or closed, needs another one."""
    writer: asyncio.StreamWriter | None = None
    for mutant in left:
        if writer is None:
            reader, writer = await asyncio.open_connection(work.host, work.port)
        outcome = await _sent(reader, writer, mutant)
        outcomes[outcome] += 1
        if outcome != "answered":
            writer.transport.abort()
            writer = None
    if writer is not None:
        writer.transport.abort()


def mutants(seed: int, count: int) -> Iterator[bytes]:
    """Yield whole frames with their sizes, one in 16 of which is wrong. All APIs come in turn."""
    apis = list(by_api().items())
    others = [frame.data for _, frames in apis for frame in frames]
    mutator = Mutator(seed, others)
    for number in range(count):
        frames = apis[number % len(apis)][1]
        data = frames[(seed + number // len(apis)) % len(frames)].data
        mutant = mutator.mutate(data, first=0 if number % 8 == 0 else HEADER_BYTES)
        size = len(mutant) * 2 + 1 if number % 16 == 0 else len(mutant)
        yield struct.pack(">i", size) + mutant


async def _sent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, frame: bytes) -> str:
    try:
        async with asyncio.timeout(PATIENCE_S):
            writer.write(frame)
            await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
    except TimeoutError:
        return "not answered"
    except (asyncio.IncompleteReadError, ConnectionError):
        return "closed"
    return "answered"


def rss_bytes(daemon: Daemon) -> int:
    """Return the broker's resident memory."""
    pages = int(Path(f"/proc/{daemon.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


if __name__ == "__main__":
    sys.exit(main())
