"""Comparison of what both brokers wrote for a script's topics, while they run and after a clean stop."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Sequence
from pathlib import Path

from barnabas.broker.storage.files.file_names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)
from barnabas.broker.storage.files.leader_epoch import LEADER_EPOCH_CHECKPOINT
from barnabas.broker.storage.producers.snapshot import decode_snapshot
from barnabas.protocol.records.batch import iter_batches
from tests.interop.differential.answers import Masks
from tests.interop.differential.decoded import index_without_positions
from tests.interop.differential.steps import LOOSE_TOPIC
from tests.support.compacted_topic import clean_offset
from tests.support.kafka.two_brokers import differences, without_topic_ids

_INDEXES = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)
_METADATA = "partition.metadata"


def compare_live(sides: Sequence[tuple[Path, Masks]], prefix: str) -> list[str]:
    """Compare while both run: indexes have zeros at their end, and empty files may not be there yet."""
    one, other = (
        {
            name: content.rstrip(b"\0") if Path(name).suffix in _INDEXES else content
            for name, content in _files(*side, prefix).items()
            if not name.endswith(_METADATA)
        }
        for side in sides
    )
    names = {name for name in one.keys() | other.keys() if one.get(name) or other.get(name)}
    return differences(*({name: files[name] for name in names & files.keys()} for files in (one, other)))


def compare_stopped(sides: Sequence[tuple[Path, Masks]], prefix: str) -> list[str]:
    """Compare after a clean stop of both."""
    return differences(*(without_topic_ids(_files(*side, prefix)) for side in sides))


def _files(data: Path, masks: Masks, prefix: str) -> dict[str, bytes]:
    found = {}
    for directory in sorted(data.glob(f"{prefix}.*")):
        if directory.name.endswith("-delete") or f".{LOOSE_TOPIC}-" in directory.name:
            continue
        for path in sorted(each for each in directory.iterdir() if each.suffix != DELETED_SUFFIX):
            content = _masked(path, masks)
            if content is not None:
                found[f"{directory.name}/{path.name}"] = content
    return found


def _masked(path: Path, masks: Masks) -> bytes | None:
    content = path.read_bytes()
    if path.suffix == LOG_SUFFIX:
        return masks.records(content)
    if path.suffix == OFFSET_INDEX_SUFFIX and masks.decodes:
        log = path.with_suffix(LOG_SUFFIX).read_bytes()
        return index_without_positions(content, log, int(path.stem))
    if path.name == LEADER_EPOCH_CHECKPOINT and masks.without_epochs:
        return None
    if path.suffix == TRANSACTION_INDEX_SUFFIX and masks.ids:
        return b"".join(
            content[at : at + 2] + masks.producer_id(content[at + 2 : at + 10]) + content[at + 10 : at + 34]
            for at in range(0, len(content), 34)
        )
    if path.suffix == TIME_INDEX_SUFFIX and masks.has_own_clock:
        return None
    if path.suffix == SNAPSHOT_SUFFIX and (masks.ids or masks.has_own_clock or masks.without_epochs):
        return "\n".join(sorted(str(tuple(masks.row(row))) for row in decode_snapshot(content, path))).encode()
    return content


def is_clean(data: Path, topic: str, partition: int, stable: int, lag_ms: int) -> bool:
    """Return whether everything of a partition is clean that a cleaner may clean.

    That is up to the segment with the last stable offset, the first dirty one with a record newer than the lag, or the
    active one.
    """
    segments = _segments(data, topic, partition)
    if segments is None:
        return False
    clean = clean_offset(data, topic, partition)
    bound = max(base for base in segments if base <= max(stable, segments[0]))
    if lag_ms:
        young_from = int(time.time() * 1000) - lag_ms
        dirty = [base for base, end in itertools.pairwise(segments) if end > clean]
        bound = min([bound, *(base for base in dirty if _newest(data, topic, partition, base) > young_from)])
    return bound == segments[0] or clean >= bound


def _newest(data: Path, topic: str, partition: int, base: int) -> float:
    """Return the largest timestamp of a segment; the file's time, which is new, where no record has one."""
    path = data / f"{topic}-{partition}" / f"{base:020}{LOG_SUFFIX}"
    newest = max((batch.max_timestamp for batch in iter_batches(path.read_bytes())), default=-1)
    return newest if newest >= 0 else math.inf


def is_trimmed(data: Path, topic: str, partition: int, start: int) -> bool:
    """Return whether a partition has no segments below its start offset."""
    segments = _segments(data, topic, partition)
    return segments is not None and (len(segments) < 2 or segments[1] > start)


def _segments(data: Path, topic: str, partition: int) -> list[int] | None:
    """Return the base offsets of the segments; None while a cleaner exchanges some."""
    paths = list((data / f"{topic}-{partition}").iterdir())
    if any(path.suffix in (CLEANED_SUFFIX, SWAP_SUFFIX) for path in paths):
        return None
    return sorted(int(path.stem) for path in paths if path.suffix == LOG_SUFFIX)
