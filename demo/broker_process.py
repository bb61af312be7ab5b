"""`barnabas serve` as a process on free ports, stopped with SIGTERM; start and stop are timed."""

from __future__ import annotations

import time
from pathlib import Path

from barnabas.clients import testing


class BrokerProcess(testing.BrokerProcess):
    """One run of the broker on `directory`/data; `start_seconds` is from fork to the ready file."""

    start_seconds = 0.0

    def start(self) -> None:
        """Start the process and measure the time. Raises BrokerProcessError."""
        began = time.monotonic()
        super().start()
        self.start_seconds = time.monotonic() - began

    def stop_cleanly(self) -> float:
        """Send SIGTERM and wait; return the seconds. Raises BrokerProcessError unless the exit code is 0."""
        began = time.monotonic()
        code = self.stop()
        if code != 0:
            raise testing.BrokerProcessError(f"the broker ended with {code} after SIGTERM, not 0\n{self.log_tail()}")
        return time.monotonic() - began

    def resident_mib(self) -> float | None:
        """Return the process's resident memory in MiB; None without /proc."""
        try:
            status = Path(f"/proc/{self.pid}/status").read_text()
        except OSError:  # not Linux
            return None
        for line in status.splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        return None
