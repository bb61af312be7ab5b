"""Metadata logs in memory or in a directory, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.image_builder import ImageBuilder
from barnabas.broker.metadata.log.batches import encode_change, encode_control_batch
from barnabas.config import BrokerConfig, Setting
from barnabas.protocol.metadata.control import SnapshotFooter, SnapshotHeader
from barnabas.protocol.metadata.levels import INITIAL_LEVEL, METADATA_VERSION
from barnabas.protocol.metadata.records import FeatureLevelRecord, MetadataRecord

LEVEL = FeatureLevelRecord(METADATA_VERSION, INITIAL_LEVEL)


class FakeClock:
    """A clock that never advances."""

    def wall_ms(self) -> int:
        return 1_700_000_000_000

    def monotonic(self) -> float:
        return 0.0


class LogDirectory:
    """Writer of batches and snapshots into a `__cluster_metadata-0`, in place of another program."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.next_offset = self.base_offset = 0
        path.mkdir(parents=True, exist_ok=True)

    @property
    def segment(self) -> Path:
        return self.path / f"{self.base_offset:020d}.log"

    def begin_at(self, offset: int) -> None:
        """Start a new segment at this offset for later appends."""
        self.next_offset = self.base_offset = offset

    def append(self, *records: MetadataRecord, epoch: int = 1, level: int = INITIAL_LEVEL, size: int = 1 << 20) -> int:
        """Append one change; return its position in the segment."""
        batches, self.next_offset = encode_change(
            records,
            level=level,
            base_offset=self.next_offset,
            leader_epoch=epoch,
            timestamp_ms=1,
            max_batch_bytes=size,
        )
        return self.append_bytes(batches)

    def append_bytes(self, data: bytes) -> int:
        position = self.segment.stat().st_size if self.segment.exists() else 0
        with self.segment.open("ab") as file:
            file.write(data)
        return position

    def write_snapshot(self, end_offset: int, *records: MetadataRecord, footer: bool = True, epoch: int = 1) -> Path:
        header = encode_control_batch([SnapshotHeader(0)], base_offset=0, leader_epoch=epoch, timestamp_ms=1)
        data, next_offset = encode_change(
            records, level=INITIAL_LEVEL, base_offset=1, leader_epoch=epoch, timestamp_ms=1
        )
        end = encode_control_batch([SnapshotFooter()], base_offset=next_offset, leader_epoch=epoch, timestamp_ms=1)
        path = self.path / f"{end_offset:020d}-{epoch:010d}.checkpoint"
        path.write_bytes(header + data + (end if footer else b""))
        return path


@pytest.fixture
def metadata_log(tmp_path: Path) -> LogDirectory:
    """Return an empty metadata log."""
    return LogDirectory(tmp_path / "__cluster_metadata-0")


@pytest.fixture
def clock() -> FakeClock:
    """Return a clock that never advances."""
    return FakeClock()


@pytest.fixture
def image_of() -> Callable[[Sequence[MetadataRecord]], MetadataImage]:
    """Return a function that builds an image from records."""

    def build(records: Sequence[MetadataRecord]) -> MetadataImage:
        builder = ImageBuilder(MetadataImage())
        for record in records:
            builder.apply(record)
        return builder.build()

    return build


@pytest.fixture
def configuration() -> Callable[..., BrokerConfig]:
    """Return a function that builds a configuration from `name=value` texts."""

    def build(*settings: str) -> BrokerConfig:
        pairs = (setting.split("=", 1) for setting in settings)
        return BrokerConfig.of({name: Setting(value, "the test") for name, value in pairs})

    return build
