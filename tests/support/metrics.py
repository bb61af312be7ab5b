"""A daemon's /metrics, for tests that wait for values."""

from __future__ import annotations

import time
import urllib.request

from tests.support.daemon import Daemon

WAIT_S = 30.0
_POLL_INTERVAL_S = 0.01


def metric(daemon: Daemon, sample: str) -> float | None:
    """Return the value of one sample, given its name with labels in text format; None if it does not exist."""
    with urllib.request.urlopen(f"http://127.0.0.1:{daemon.metrics_port}/metrics", timeout=WAIT_S) as answer:
        for line in answer.read().decode().splitlines():
            name, _, value = line.rpartition(" ")
            if name == sample:
                return float(value)
    return None


def healthz(daemon: Daemon) -> str:
    """Return the text of /healthz, which is 200."""
    with urllib.request.urlopen(f"http://127.0.0.1:{daemon.metrics_port}/healthz", timeout=WAIT_S) as answer:
        text: str = answer.read().decode()
    return text


def wait_for_metric(daemon: Daemon, sample: str, value: float, *, wait_s: float = WAIT_S) -> None:
    """Poll until the sample has the value."""
    deadline = time.monotonic() + wait_s
    while (found := metric(daemon, sample)) != value:
        assert time.monotonic() < deadline, f"{sample} is {found}, not {value}"
        time.sleep(_POLL_INTERVAL_S)
