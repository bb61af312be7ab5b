"""A client that produces one small record at a time, and measures how long each takes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles

from tests.support.daemon import Daemon
from tests.support.storage.records import plain
from tests.support.wire import WireClient

PAUSE_S = 0.005
"""Between two records."""
TOPIC = "modest"


class ModestClient:
    """The client. `waits` are the seconds that each record took until it was acknowledged."""

    def __init__(self, client: WireClient) -> None:
        self.waits: list[float] = []
        self._client = client
        self._refused: list[str] = []

    def produce_while(self, wanted: Callable[[], bool]) -> None:
        """Produce as long as `wanted` returns True, and until a record is refused."""
        while wanted() and not self._refused:
            began = time.perf_counter()
            answer = self._client.produce(TOPIC, plain(1))
            self.waits.append(time.perf_counter() - began)
            if answer.error:
                self._refused.append(f"a record of the modest client was refused: {answer.error.name}")
            time.sleep(PAUSE_S)

    def complaints(self) -> list[str]:
        """Return what is wrong: a record that was refused, or that was acknowledged and is not there."""
        there, acknowledged = self._client.end_offset(TOPIC), len(self.waits) - len(self._refused)
        if there == acknowledged:
            return self._refused
        return [*self._refused, f"{acknowledged} records were acknowledged, and {there} are there"]

    def summary(self) -> str:
        """Return a line with the distribution of the waits."""
        cuts = quantiles(self.waits, n=1000)
        return (
            f"p50 {1000 * cuts[499]:.2f} ms, p99 {1000 * cuts[989]:.2f} ms, p99.9 {1000 * cuts[998]:.2f} ms,"
            f" longest {1000 * max(self.waits):.1f} ms"
        )


@contextmanager
def modest_client(daemon: Daemon) -> Iterator[ModestClient]:
    """Connect a modest client, whose topic is created."""
    with WireClient(daemon.host, daemon.port) as client:
        client.create_topic(TOPIC)
        yield ModestClient(client)


def rss_bytes(daemon: Daemon) -> int:
    """Return the broker's resident memory."""
    pages = int(Path(f"/proc/{daemon.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def peak_rss_bytes(daemon: Daemon) -> int:
    """Return the largest resident memory that the broker has had."""
    status = Path(f"/proc/{daemon.pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) << 10
