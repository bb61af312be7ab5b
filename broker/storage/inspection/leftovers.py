"""Check of files that an interrupted cleaning or splitting left in a partition directory.

A `.swap` file is complete: a start replaces the segments that it covers by it, and deletes them. So damage in it is
worse than in a segment, which recovery would truncate. A start drops `.cleaned` files without reading them. After a
clean stop neither exists; `.deleted` files stay until their delay is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from barnabas.broker.storage.files.file_names import CLEANED_SUFFIX, SWAP_SUFFIX
from barnabas.broker.storage.inspection.file_types import FileType, KnownFile
from barnabas.broker.storage.inspection.findings import Circumstances, Finding
from barnabas.broker.storage.inspection.log_walk import LogWalk, StoredBatch
from barnabas.broker.storage.inspection.verify_segment import message_fault, records_fault

_STAGES = (SWAP_SUFFIX, CLEANED_SUFFIX)


def check_leftovers(files: Iterable[KnownFile], circumstances: Circumstances) -> Iterator[Finding]:
    """Check a partition's files; skipped beside a running broker, whose cleaner may be working. Raises OSError."""
    if circumstances.is_in_use:
        return
    for known in files:
        if known.stage not in _STAGES:
            continue
        if circumstances.is_clean:
            yield Finding(known.path, None, "a leftover of an interrupted cleaning, although the last stop was clean")
        if known.stage == SWAP_SUFFIX and known.type is FileType.LOG:
            yield from _check_swap(known)


def _check_swap(known: KnownFile) -> Iterator[Finding]:
    walk = LogWalk(known.path)
    next_offset = known.offset
    for step in walk:
        if isinstance(step, StoredBatch):
            fault = records_fault(step.batch) if step.fault is None else step.fault
        else:
            fault = message_fault(step)
        if fault is None and step.first_offset < next_offset:
            fault = f"base offset {step.first_offset}, expected {next_offset} or higher"
        if fault is not None:
            yield Finding(known.path, step.position, f"damage in a file that a start would use as a segment: {fault}")
        next_offset = max(next_offset, step.last_offset + 1)
    if walk.end_fault is not None:
        yield Finding(
            known.path,
            walk.position,
            f"damage in a file that a start would use as a segment: {walk.left_bytes} bytes at its end: "
            f"{walk.end_fault}",
        )
