"""A real Prometheus (Debian: `prometheus`) that scrapes one daemon, with a separate directory.

with Prometheus(directory, daemon.metrics_port) as prometheus:
    prometheus.query("up")
"""

from __future__ import annotations

import json
import re
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

WAIT_S = 60.0
_POLL_INTERVAL_S = 0.1

_CONFIG = """\
global:
  scrape_interval: 1s
scrape_configs:
  - job_name: barnabas
    static_configs:
      - targets: ["127.0.0.1:{port}"]
"""


class Prometheus:
    """Prometheus on a free port of 127.0.0.1. Every wait has a timeout."""

    def __init__(self, directory: Path, metrics_port: int) -> None:
        self._directory = directory
        self._metrics_port = metrics_port
        self._log = directory / "prometheus.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0

    def __enter__(self) -> Self:
        self._directory.mkdir(parents=True, exist_ok=True)
        config = self._directory / "prometheus.yml"
        config.write_text(_CONFIG.format(port=self._metrics_port))
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    "prometheus",
                    f"--config.file={config}",
                    f"--storage.tsdb.path={self._directory / 'data'}",
                    "--web.listen-address=127.0.0.1:0",
                ],
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            self._port = self._await_port(self._process)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end()

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the series of an instant query. Fails with Prometheus' error text if it rejects the expression."""
        address = f"http://127.0.0.1:{self._port}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
        try:
            with urllib.request.urlopen(address, timeout=WAIT_S) as answer:
                found = json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{expression}: {error.read().decode(errors='replace')}") from error
        assert found["status"] == "success", found
        result = found["data"]["result"]
        if found["data"]["resultType"] == "scalar":
            return [{"metric": {}, "value": result}]
        series: list[dict[str, Any]] = result
        return series

    def until(self, expression: str) -> list[dict[str, Any]]:
        """Return the series of the query as soon as there are any."""
        deadline = time.monotonic() + WAIT_S
        while not (series := self.query(expression)):
            assert time.monotonic() < deadline, f"no series within {WAIT_S} s: {expression}"
            time.sleep(_POLL_INTERVAL_S)
        return series

    def _await_port(self, process: subprocess.Popen[bytes]) -> int:
        deadline = time.monotonic() + WAIT_S
        while True:
            log = self._log.read_text(errors="replace")
            found = re.search(r"Listening on.*?address=127\.0\.0\.1:(\d+)", log)
            if found is not None and "Server is ready to receive web requests" in log:
                return int(found[1])
            assert process.poll() is None, f"prometheus ended with {process.returncode}\n{log}"
            assert time.monotonic() < deadline, f"prometheus was not ready within {WAIT_S} s\n{log}"
            time.sleep(_POLL_INTERVAL_S)

    def _end(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(WAIT_S)
            self._process = None
