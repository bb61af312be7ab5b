"""Interface to the cleaner for code that changes logs.

A round rewrites a log's segments in the background. Code that truncates, moves or deletes a log must stop the round
first and allow cleaning again afterwards:

    abort               end a running round
    abort_and_pause     end a running round and prevent others; counted, so that two callers may pause a partition
    resume              undo one abort_and_pause of each partition

`abort` and `abort_and_pause` return when the cleaner thread has released the partition. The other calls keep
cleaner-offset-checkpoint consistent with the log. Thread-safe. Source: Kafka LogCleaner.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from barnabas.protocol.topic_partition import TopicPartition


class CleaningControl(Protocol):
    """The part of CleanerManager for code that changes logs."""

    def abort(self, topic_partition: TopicPartition) -> None:
        """End a running round of the partition; return when its thread has released the partition."""
        ...

    def abort_and_pause(self, topic_partition: TopicPartition) -> None:
        """Do `abort`, and prevent rounds of the partition until `resume` was called as often as this."""
        ...

    def resume(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Undo one `abort_and_pause` of each partition. A partition that is not paused is a bug (assert)."""
        ...

    def maybe_truncate_checkpoint(self, log_dir: Path, topic_partition: TopicPartition, offset: int) -> None:
        """Lower the clean offset of a truncated log, which now ends at `offset`, to that offset.

        No caller yet: replicas that follow a leader will truncate their logs.
        """
        ...

    def alter_checkpoint_dir(self, topic_partition: TopicPartition, source: Path, destination: Path) -> None:
        """Move the clean offset along with a log from log directory `source` to `destination`."""
        ...

    def remove_from_checkpoint(self, log_dir: Path, topic_partition: TopicPartition) -> None:
        """Forget a log that has gone from `log_dir`: a new one of the same name must not inherit its clean offset."""
        ...
