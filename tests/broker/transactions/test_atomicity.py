"""Transfers between accounts stay whole while the broker is killed in every step of a commit, and on bad disks.

The seeded runs here are short; BARNABAS_TEST_ATOMICITY_ROUNDS=N repeats them with N further seeds.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.storage.files import failpoints
from tests.support.daemon import Daemon
from tests.support.faults.failing_writes import FailingWrites
from tests.support.small_disk import fill_up, small_disk_or_skip
from tests.support.transactions import transfers
from tests.support.transactions.transfers import TOPIC, Bank

SEEDS = range(1, 2 + int(os.environ.get("BARNABAS_TEST_ATOMICITY_ROUNDS", "0")))
SETTINGS = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
POINTS = (
    "transaction.deciding",
    "transaction.prepared",
    "transaction.marker",
    "transaction.marked",
    "transaction.completed",
)
"""Failpoints of a commit or abort, in their order."""
WAIT_S = 30.0


def await_end(daemon: Daemon) -> None:
    """Wait until the daemon's failpoint has killed it."""
    deadline = time.monotonic() + WAIT_S
    while daemon.running:
        assert time.monotonic() < deadline, "the failpoint was not reached"
        time.sleep(0.005)  # polling another process with a deadline


@pytest.mark.parametrize("level", [2, 0])
@pytest.mark.parametrize("seed", SEEDS)
def test_transfers_stay_whole_when_the_broker_is_killed_in_any_step_of_a_commit(
    tmp_path: Path, seed: int, level: int
) -> None:
    draw = random.Random(seed)
    bank = Bank(seed=seed, level=level)
    settings = {**SETTINGS, "initial.features": f"transaction.version={level}"}
    points = draw.sample(POINTS, len(POINTS)) if level == 2 else draw.sample(POINTS, 2)
    with Daemon(tmp_path, settings) as daemon:
        bank.create(daemon.host, daemon.port)
        assert daemon.stop() == 0
    with bank.opened():
        for point in points:
            armed = {failpoints.VARIABLE: f"{point}=kill@{draw.randrange(1, 10)}"}
            daemon = Daemon(tmp_path, settings, armed)
            daemon.start()
            bank.address = daemon.host, daemon.port
            await_end(daemon)
            bank.address = None
            daemon.stop()  # closes its pipe
        daemon = Daemon(tmp_path, settings)
        with daemon:
            bank.address = daemon.host, daemon.port
            bank.await_transfers(10)
            bank.close()
            bank.check(daemon.host, daemon.port)
            assert daemon.stop() == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk_or_skip(tmp_path / "small", "8m") as mounted:
        yield mounted


def test_transfers_stay_whole_on_a_full_disk(tmp_path: Path, disk: Path) -> None:
    draw = random.Random(1)
    bank = Bank(seed=1, answer_wait_s=0.2)
    settings = {**SETTINGS, "log.dirs": str(disk / "data"), "log.index.size.max.bytes": "4096"}
    filler = disk / "filler"
    with Daemon(tmp_path / "daemon", settings) as daemon:
        bank.create(daemon.host, daemon.port)
        with bank.opened():
            bank.address = daemon.host, daemon.port
            for _ in range(4):
                bank.await_transfers(5)
                fill_up(filler, left_bytes=draw.randrange(4) * 4096)
                bank.await_refusals(5)
                filler.unlink()
            bank.await_transfers(5)
        bank.check(daemon.host, daemon.port)
        assert daemon.stop() == 0


def test_transfers_stay_whole_when_a_disk_fails(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    bank = Bank(seed=1, answer_wait_s=0.2)
    with Daemon(tmp_path / "daemon", {**SETTINGS, "log.dirs": f"{first},{second}"}) as daemon:
        bank.create(daemon.host, daemon.port, segment_bytes="4096")
        failing = next(path for path in second.iterdir() if path.name.startswith(TOPIC))
        with bank.opened():
            bank.address = daemon.host, daemon.port
            bank.await_transfers(5)
            failing.rename(tmp_path / "set-aside")
            failing.write_text("no directory")  # the next roll fails, and takes the log directory offline
            bank.await_refusals(10)
            bank.address = None
            daemon.kill()
            failing.unlink()
            (tmp_path / "set-aside").rename(failing)
            daemon.start()
            bank.address = daemon.host, daemon.port
            bank.await_transfers(5)
        bank.check(daemon.host, daemon.port)
        assert daemon.stop() == 0


@pytest.mark.parametrize("which", ["markers", "short"])
def test_transfers_stay_whole_when_the_compiled_append_fails(
    tmp_path: Path, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfers, "ABORT_SHARE", 0)  # markers that abort are not appended by compiled code
    first, second = tmp_path / "first", tmp_path / "second"
    bank = Bank(seed=1, answer_wait_s=0.2)
    writes = FailingWrites(tmp_path)
    with Daemon(tmp_path / "daemon", {**SETTINGS, "log.dirs": f"{first},{second}"}, writes.environ) as daemon:
        bank.create(daemon.host, daemon.port)
        failing = next(path for path in second.iterdir() if path.name.startswith(TOPIC))
        with bank.opened():
            bank.address = daemon.host, daemon.port
            bank.await_transfers(5)
            writes.fail(which, f"{failing}/")
            bank.await_refusals(10)
            assert writes.stop() > 0
            bank.address = None
            daemon.kill()
            daemon.start()
            bank.address = daemon.host, daemon.port
            bank.await_transfers(5)
        bank.check(daemon.host, daemon.port)
        assert daemon.stop() == 0
