"""Faults put into the code, which a fault of one call, or a disk that hangs, must bring to light."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.broker.storage.files.file_records import FileRecords
from barnabas.broker.storage.group_commit import GroupCommitFlusher
from barnabas.broker.storage.log.loading import segment_recovery
from tests.torture.crash_states.mutations import replaced
from tests.torture.faulty_calls.injection import parse_fault
from tests.torture.faulty_calls.running import run_with
from tests.torture.faulty_calls.stalls import run_with_hanging_disk


class CallMutation(NamedTuple):
    """A fault in the code, and the name of what finds it."""

    found_by: str
    """A fault, or `hanging/<log directory>`."""
    changes: Sequence[tuple[Any, str, object]]

    def complaints(self, scratch: Path) -> list[str]:
        """Break the code, and return what is found."""
        with replaced(self.changes):
            kind, _, rest = self.found_by.partition("/")
            if kind == "hanging":
                return run_with_hanging_disk(rest, scratch)
            return run_with(parse_fault(self.found_by), scratch).complaints


def _ignore_errors(real: Callable[[FileRecords], None]) -> Callable[[FileRecords], None]:
    def sync(self: FileRecords) -> None:
        with contextlib.suppress(OSError):
            real(self)

    return sync


def _work_and_forget(self: GroupCommitFlusher) -> None:
    """Serve requests, but not those that arrived during the sync of their log."""
    while True:
        with self._condition:
            while not self._due:
                if self._stopping:
                    return
                self._condition.wait()
            log = self._due.popleft()
            requests = self._waiting.pop(log)
            self._syncing.add(log)
            self._idle -= 1
        self._serve(log, requests)
        with self._condition:
            self._idle += 1
            self._syncing.remove(log)


CALL_MUTATIONS = {
    "an ignored error: that of a sync": CallMutation(
        "appends/two/13/EIO", [(FileRecords, "sync", _ignore_errors(FileRecords.sync))]
    ),
    "a lost wake-up: requests that arrive during a sync": CallMutation(
        "hanging/two", [(GroupCommitFlusher, "_work", _work_and_forget)]
    ),
    "recovery trusts a single read": CallMutation(
        "start/two/0/wrong", [(segment_recovery, "_ensure_read_right", lambda *_: None)]
    ),
}
