"""Acknowledged state in metadata directories, and what may be missing after damage.

After one damage, opening them must either be refused or return everything that was acknowledged. Excepted, as described
in docs/hand-over.md, is damage that looks like a crash: the last append to the log may be torn, and a log shorter by a
whole number of batches looks like one stopped earlier, unless another file shows that it was longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.log.replay import Replayer
from barnabas.broker.metadata.log.snapshots import read_newest_snapshot
from barnabas.broker.metadata.security.image import SecurityImage
from tests.support.storage.damage import METADATA, batch_ends

_HEAD_BYTES = 27
"""Bytes of a batch header without which the end of the batch is unknown, so that it could be the last one."""


class Holding(NamedTuple):
    """Acknowledged state: topics with ids and partitions, configs, allocated ids, security, records kept for Kafka."""

    topics: tuple[tuple[str, bytes, tuple[int, ...]], ...]
    configs: tuple[tuple[object, ...], ...]
    next_producer_id: int
    security: SecurityImage
    carried: tuple[bytes, ...]


def holding(image: MetadataImage) -> Holding:
    """Return the state in an image, without what a start writes itself (leaders, epochs, levels)."""
    return Holding(
        tuple((name, topic.topic_id, tuple(sorted(topic.partitions))) for name, topic in sorted(image.topics.items())),
        tuple(
            (*resource, name, value)
            for resource, values in sorted(image.configs.items())
            for name, value in sorted(values.items())
        ),
        image.next_producer_id,
        image.security,
        tuple(sorted(repr(each).encode() for each in image.carried)),
    )


class States(NamedTuple):
    """The states that the last segment went through. `ends` are the end positions of its batches, starting with 0."""

    segment: Path
    data: bytes
    ends: list[int]
    holdings: list[Holding]
    was_closed: bool

    @property
    def final(self) -> Holding:
        """The state after every batch."""
        return self.holdings[-1]

    def allowed(self) -> list[Holding]:
        """Return the acceptable states, given the damaged segment; damage to other files permits no loss."""
        try:
            now = self.segment.read_bytes()
        except OSError:
            return [self.final]
        if now == self.data:
            return [self.final]
        shared = next((at for at, (one, two) in enumerate(zip(now, self.data, strict=False)) if one != two), None)
        first = min(len(now), len(self.data)) if shared is None else shared
        whole = max(index for index, end in enumerate(self.ends) if end <= first)
        last_batch = len(self.ends) - 2
        is_shorter = self.data.startswith(now)
        # Several batches may belong to one append, of which the following batches were never applied.
        is_unfinished = not self.was_closed and not any(now[first:].strip(b"\0"))
        has_no_header = is_shorter and 0 < len(now) - self.ends[whole] < _HEAD_BYTES
        is_torn = whole == last_batch or is_unfinished or has_no_header
        return [self.holdings[whole], self.final] if is_torn else [self.final]


def states_of(metadata_log_dir: Path) -> States:
    """Return the states of an undamaged directory."""
    directory = metadata_log_dir / METADATA
    segments = sorted(directory.glob("*.log"))
    data = segments[-1].read_bytes()
    ends = batch_ends(data)
    return States(
        segments[-1],
        data,
        ends,
        list(_holdings(directory, segments, data, ends)),
        (metadata_log_dir / ".kafka_cleanshutdown").exists(),
    )


def _holdings(directory: Path, segments: list[Path], data: bytes, ends: list[int]) -> Iterator[Holding]:
    for end in ends:
        snapshot = read_newest_snapshot(directory)
        replayer = Replayer("the test", None if snapshot is None else snapshot.image)
        for segment in segments[:-1]:
            replayer.replay(segment.read_bytes())
        replayer.replay(data[:end])
        yield holding(replayer.image())
