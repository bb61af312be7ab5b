"""The high watermarks with which a broker starts whose high watermark waits for a standby (standby.min.acks=1).

What lies between the last checkpoint and the log end may be missing at the standby. Consumers get it once a standby has
fetched it, so that a takeover after this start takes nothing away that they have read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.storage.files.checkpoint_file import HIGH_WATERMARK_CHECKPOINT, OffsetCheckpointFile

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from barnabas.protocol.topic_partition import TopicPartition


def read_high_watermarks(log_dirs: Iterable[Path]) -> dict[TopicPartition, int]:
    """Return the checkpointed high watermarks of all log directories. Raises OSError."""
    found: dict[TopicPartition, int] = {}
    consequence = "consumers get the records of its partitions once a standby has them"
    for log_dir in log_dirs:
        found |= OffsetCheckpointFile(log_dir / HIGH_WATERMARK_CHECKPOINT).read_or_set_aside(consequence)
    return found
