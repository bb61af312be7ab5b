"""Writes that a signal interrupts (EINTR) are repeated: by Python itself, and by the compiled append."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.faults.failing_writes import FailingWrites
from tests.support.forking import REPOSITORY
from tests.support.storage.bench import LogBench, read_batches

APPENDS = 20
_CODE = f"""
import sys
from pathlib import Path
from tests.support.storage.bench import LogBench, append, sized_batch
log = LogBench(Path(sys.argv[1])).open()
for number in range({APPENDS}):
    assert append(log, sized_batch(200)) == number
log.flush()
"""


def test_interrupted_writes_are_repeated(tmp_path: Path) -> None:
    writes = FailingWrites(tmp_path)
    writes.fail("interrupt", ".log")
    environ = {**writes.environ, "PYTHONPATH": str(REPOSITORY)}

    subprocess.run([sys.executable, "-c", _CODE, str(tmp_path / "logs")], env=environ, check=True, timeout=60)

    assert writes.stop() == APPENDS
    log = LogBench(tmp_path / "logs").open(clean=False)
    assert [batch.base_offset for batch in read_batches(log)] == list(range(APPENDS))
