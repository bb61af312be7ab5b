"""What others ask of the cleaner manager before they touch a log that may be in the middle of a round.

A round rewrites a log's segments in the background. Whoever truncates a log, moves it to another directory or deletes
it stops the round first, and lets the partition be cleaned again afterwards:

    abort               a deletion: end the round, forget it
    abort_and_pause     end the round and start no other; counted, so that two callers may pause the same partition
    resume              undo one abort_and_pause for each of these partitions

`abort` and `abort_and_pause` return when the cleaner thread has let go of the partition. The checkpoint calls keep
cleaner-offset-checkpoint true to what happened to the log. All of it is thread-safe. Source: Kafka LogCleaner.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from barnabas.protocol.topic_partition import TopicPartition


class CleaningControl(Protocol):
    """The cleaner manager, as the owners of logs see it."""

    def abort(self, topic_partition: TopicPartition) -> None:
        """End a running round of the partition. Returns when the cleaner has let go; at once when there is none."""
        ...

    def abort_and_pause(self, topic_partition: TopicPartition) -> None:
        """As `abort`, and no round of the partition starts until `resume` was called as often as this."""
        ...

    def resume(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Undo one `abort_and_pause` of each of these. One that is not paused is a bug of the caller (assert)."""
        ...

    def maybe_truncate_checkpoint(self, log_dir: Path, topic_partition: TopicPartition, offset: int) -> None:
        """The log now ends at `offset`: lower its checkpointed clean offset to that if it is above it."""
        ...

    def alter_checkpoint_dir(self, topic_partition: TopicPartition, source: Path, destination: Path) -> None:
        """The log moved from log directory `source` to `destination`: its clean offset moves along."""
        ...

    def remove_from_checkpoint(self, log_dir: Path, topic_partition: TopicPartition) -> None:
        """The log is gone from `log_dir` (deleted, stray): a new log of its name must not get its clean offset."""
        ...
