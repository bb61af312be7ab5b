"""Faults of the writes that the compiled append makes: `python -m tests.torture.faulty_calls.compiled_appends DIR`.

Python cannot replace its writes. A library that is loaded before libc lets them fail (`tests/support/faults`), so this
runs in a process of its own. Each write of a series of appends goes wrong in each of several ways: alone, and with the
next ones, which are Python's second attempt and the producer's. Prints complaints, and the number of faults.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Final

from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.records.errors import CorruptRecordError
from tests.support.faults.failing_writes import Control
from tests.support.storage.bench import START_MS, LogBench, log_config, read_batches, sized_batch

APPENDS: Final = 10
_SIZES: Final = (200, 40_000)
"""Below and above the size from which the GIL is released for a write."""
_FAULTS: Final = tuple(
    (kind, attempts)
    for kind in ("EIO", "EIO!", "ENOSPC", "half", "half+ENOSPC", "half+ENOSPC!")
    for attempts in (1, 2, 3)
)
_MOST_CALLS: Final = 200


def main() -> int:
    """Try all faults; return 1 if any promise was broken."""
    scratch = Path(sys.argv[1])
    control = Control.of_environ()
    complaints, count = [], 0
    for kind, attempts in _FAULTS:
        for call in range(_MOST_CALLS):
            name = f"{kind.rstrip('!')}@{call}-{call + attempts - 1}{'!' * kind.endswith('!')}"
            found, failed = _appends(scratch / "log", control, name)
            complaints += [f"{name}: {each}" for each in found]
            if not failed:
                break
            count += 1
    for each in complaints:
        print(each)
    print(f"{count} faults")
    return 1 if complaints or not count else 0


def _appends(directory: Path, control: Control, fault: str) -> tuple[list[str], int]:
    """Append while one fault happens, and start after a crash; return complaints and the number of failed calls."""
    bench = LogBench(directory)
    config = log_config(index_interval_bytes=150, segment_bytes=130_000)
    log = bench.open(config)
    if log.append_kernel is None:
        raise SystemExit("the compiled kernels are not built")
    complaints: list[str] = []
    acknowledged: list[int] = []
    control.fail(fault, f"{directory}/")
    for number in range(APPENDS):
        for _ in range(5):  # a producer sends a batch again that was refused; the disk is full for a while
            size = _SIZES[number // 2 % 2]
            data = sized_batch(size, START_MS + number, producer_id=7, producer_epoch=0, base_sequence=number)
            try:
                acknowledged.append(log.append_as_leader(data, leader_epoch=0).base_offset)
            except BrokerError as error:
                if error.code is not ErrorCode.KAFKA_STORAGE_ERROR:
                    complaints.append(f"a client gets {error.code.name}: {error}")
            else:
                break
    failed = control.stop()
    is_online = not bench.failed_directories
    if is_online != (len(acknowledged) == APPENDS):
        complaints.append(f"{len(acknowledged)} of {APPENDS} batches are stored, and the log is online: {is_online}")
    if not is_online and "ENOSPC" in fault and "!" not in fault:
        complaints.append("a full disk took the directory offline")
    if acknowledged != list(range(len(acknowledged))):
        complaints.append(f"offsets are {acknowledged}")
    if is_online:
        complaints += _differences("while it runs", log, acknowledged)
        bench.crash(log)
    again = LogBench(directory)
    recovered = again.open(config, clean=False)
    complaints += _differences("after a crash", recovered, acknowledged)
    again.crash(recovered)
    shutil.rmtree(directory)
    return complaints, failed


def _differences(when: str, log: PartitionLog, acknowledged: list[int]) -> list[str]:
    """Compare what is stored, and where the indexes find it, with what was acknowledged: batches of one record."""
    try:
        stored = [each.base_offset for each in read_batches(log)]
    except CorruptRecordError as error:
        return [f"{when}: {error}"]
    if stored != acknowledged:
        return [f"{when}: stored are {stored}, acknowledged {acknowledged}"]
    complaints = []
    for offset in acknowledged:
        if (found := next(read_batches(log, offset)).base_offset) != offset:
            complaints.append(f"{when}: a read at {offset} begins at {found}")
        by_time = log.offset_for_timestamp(START_MS + offset)
        if by_time is None or by_time.offset != offset:
            complaints.append(f"{when}: the time of {offset} is found at {by_time}")
    return complaints


if __name__ == "__main__":
    sys.exit(main())
