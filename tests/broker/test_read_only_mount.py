"""read.only=true on a file system that is mounted read-only, such as a disk from a failed machine.

The mount exists only in the daemon's mount namespace, and vanishes with the daemon.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.daemon import Daemon, DaemonError, start_fresh_daemon
from tests.support.storage.files import snapshot_of
from tests.support.storage.records import plain
from tests.support.wire import WireClient

RECORDS = 30
_MOUNTED = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'


def in_read_only_mount(directory: Path, command: list[str]) -> list[str]:
    """Return a command that runs `command` with `directory` mounted read-only."""
    return ["unshare", "--mount", "sh", "-c", _MOUNTED, str(directory), *command]


def need_mounts(directory: Path) -> None:
    """Skip the test if this user cannot mount."""
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare")
    command = in_read_only_mount(directory, ["touch", str(directory / "written")])
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    if "Read-only file system" not in tried.stderr:
        pytest.skip(f"no read-only mount can be made here: {tried.stderr.strip()}")


def written(scratch: Path, *, killed: bool) -> Path:
    """Write a directory with records; if `killed`, with a torn batch at the end."""
    with start_fresh_daemon(scratch) as daemon:
        with WireClient(daemon.host, daemon.port) as wire:
            wire.create_topic("orders", 1)
            for _ in range(RECORDS):
                assert wire.produce("orders", plain(1)).error == 0
        if killed:
            daemon.kill()
        else:
            assert daemon.stop() == 0
    if killed:
        with next(daemon.data_directory.glob("orders-0/*.log")).open("ab") as file:
            file.write(bytes(plain(1))[:50])
    return daemon.data_directory


@pytest.fixture
def mounted(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Return a function after whose call every daemon has the directory mounted read-only."""
    ours = Daemon.command

    def mount(directory: Path) -> None:
        monkeypatch.setattr(Daemon, "command", lambda self: in_read_only_mount(directory, ours(self)))

    return mount


@pytest.mark.parametrize("killed", [False, True])
def test_a_read_only_mount_is_served_whole(tmp_path: Path, mounted: Callable[[Path], None], killed: bool) -> None:
    data = written(tmp_path / "before", killed=killed)
    need_mounts(data)
    before = snapshot_of(data)
    mounted(data)
    start = functools.partial(start_fresh_daemon, tmp_path / "after", f"log.dirs={data}")
    with pytest.raises(DaemonError, match="Read-only file system"):  # the mount is effective
        start()
    with start("read.only=true") as daemon:
        with WireClient(daemon.host, daemon.port) as wire:
            assert wire.fetch("orders", RECORDS - 1).high_watermark == RECORDS
            assert wire.fetch("orders", 0).error == 0
            assert wire.produce("orders", plain(1)).error != 0
        assert daemon.stop() == 0
    assert snapshot_of(data) == before
    assert not os.path.ismount(data)
