"""Mutated requests of real clients. Peers in other processes send them over many connections.

The broker must not end, log an error or keep the memory. A frame that is not answered is given up with its connection:
a join or a fetch may wait.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import uvloop

from tests.support.daemon import start_daemon
from tests.support.frames import Mutator, by_api
from tests.torture.hostile.modest_client import modest_client, rss_bytes

PEERS = 2
CONNECTIONS = 64
"""Of each peer; most of the time, some of them wait for an answer that does not come."""
PATIENCE_S = 0.1
HEADER_BYTES = 8
"""API key, version and correlation id, which seven of eight mutants keep."""
CHUNK = 20_000
RSS_GROWTH_BYTES = 192 << 20


class Work(NamedTuple):
    """Mutants that one peer sends."""

    host: str
    port: int
    seed: int
    size: int


def run(frames: int, seed: int, directory: Path) -> list[str]:
    """Send the mutants to a broker; return what is wrong. Prints the totals."""
    with start_daemon(directory) as daemon:
        before = rss_bytes(daemon)
        outcomes: Counter[str] = Counter()
        with modest_client(daemon) as modest, multiprocessing.get_context("spawn").Pool(PEERS) as peers:
            chunks = [Work(daemon.host, daemon.port, seed + number, CHUNK) for number in range(-(-frames // CHUNK))]
            results = [peers.apply_async(send_all, (work,)) for work in chunks]
            modest.produce_while(lambda: not all(result.ready() for result in results))
            for result in results:
                outcomes.update(result.get())
            complaints = modest.complaints()
        growth = rss_bytes(daemon) - before
        complaints += [line for line in daemon.log.splitlines() if " ERROR " in line or line.startswith("Traceback")]
    print(f"{sum(outcomes.values())} mutants: {', '.join(f'{count} {name}' for name, count in outcomes.most_common())}")
    print(f"{len(modest.waits)} records of the modest client: {modest.summary()}")
    print(f"memory: {before >> 20} MiB, and {growth >> 20} MiB more at the end")
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
