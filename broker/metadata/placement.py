"""Where a new partition goes, and whether there is room for one more."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from barnabas.broker.metadata.image import MetadataImage
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.metadata.partition_state import PartitionState


class Placement:
    """Which log directory a new partition goes to: the one with the fewest, first named first.

    `partitions_max` is how many partitions this process can hold open, all together. Kafka has no such check, and a log
    that cannot open its files takes its directory offline: one request of ten thousand names would end the service.
    """

    def __init__(
        self,
        node_id: int,
        directory_ids: Sequence[bytes],
        image: MetadataImage,
        *,
        partitions_max: int = sys.maxsize,
    ) -> None:
        if not directory_ids:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "no log directory is online")
        self.node_id = node_id
        self._partitions_max = partitions_max
        self._partitions = sum(len(topic.partitions) for topic in image.topics.values())
        self._counts = Counter(dict.fromkeys(directory_ids, 0))
        if len(directory_ids) > 1:
            for topic in image.topics.values():
                for state in topic.partitions.values():
                    self._counts.update(directory for directory in state.directories if directory in self._counts)

    def ensure_room(self, count: int) -> None:
        """Raises BrokerError POLICY_VIOLATION where `count` more partitions are more than can be held open."""
        if self._partitions + count > self._partitions_max:
            raise BrokerError(
                ErrorCode.POLICY_VIOLATION,
                f"{count} more than the {self._partitions} partitions that there are would be above"
                f" {self._partitions_max}, which is what this process's limit on open files allows (ulimit -n).",
            )

    def next_state(self) -> PartitionState:
        """State of a new partition, led by this node."""
        directory = min(self._counts, key=self._counts.__getitem__)
        self._counts[directory] += 1
        self._partitions += 1
        return PartitionState((self.node_id,), (self.node_id,), self.node_id, directories=(directory,))
