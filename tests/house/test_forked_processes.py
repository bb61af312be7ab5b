"""Processes that tests fork: threads may share one."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from tests.support.forking import TIMEOUT_S, fork_server


def test_a_poll_leaves_the_exit_code_to_a_wait_in_another_thread(tmp_path: Path) -> None:
    for _ in range(10):
        with (tmp_path / "output").open("wb") as output:
            process = fork_server().start(
                ["version"], environ=os.environ, cwd=str(tmp_path), stdout=output.fileno(), stderr=output.fileno()
            )
        codes: list[int] = []
        waiting = threading.Thread(target=lambda codes=codes, process=process: codes.append(process.wait(TIMEOUT_S)))
        waiting.start()
        deadline = time.monotonic() + TIMEOUT_S
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.001)
        waiting.join()
        process.stdin.close()

        assert codes == [process.returncode]
