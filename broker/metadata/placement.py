"""Placement of new partitions on log directories, and the limit on their number."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from barnabas.broker.metadata.image import MetadataImage
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.metadata.partition_state import PartitionState


class Placement:
    """Chooses the log directory with the fewest partitions for each new one; of equal ones the first.

    `partitions_max` is the number of partitions that this process can hold open. Clients create topics by naming them
    in Metadata, and a log that finds no file descriptor takes its directory offline: without this limit, which Kafka
    lacks, one request with ten thousand names would end the service.
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
        """Raise BrokerError POLICY_VIOLATION if `count` more partitions could not be held open."""
        if self._partitions + count > self._partitions_max:
            raise BrokerError(
                ErrorCode.POLICY_VIOLATION,
                f"{count} partitions more than the existing {self._partitions} would exceed {self._partitions_max}, "
                "the number that this process's limit on open files allows (ulimit -n).",
            )

    def next_state(self) -> PartitionState:
        """Return the state of a new partition, led by this node, and count it."""
        directory = min(self._counts, key=self._counts.__getitem__)
        self._counts[directory] += 1
        self._partitions += 1
        return PartitionState((self.node_id,), (self.node_id,), self.node_id, directories=(directory,))
