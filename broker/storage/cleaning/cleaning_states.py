"""Cleaning state of each partition: free, in progress, aborted or paused.

    free ------claim----> in progress ----release----> free
       |                      |
       | abort_and_pause      | abort_and_pause: aborted; the thread notices (`ensure_not_aborted`) and releases it
       v                      v
    paused(1) <---release--- aborted
       ^ |
       | | abort_and_pause: paused(n + 1), resume: paused(n - 1), and free after the last
       +-+

`abort_and_pause` returns when the partition is paused: no thread works on its segments, and none will. A claim is for a
round of the cleaner or for the deletion of old segments, by a cleaner thread on compacted partitions and by the
retention task on others. So the two never work on the same partition when a topic's cleanup.policy changes.
Source: Kafka LogCleanerManager, LogCleaningState.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from enum import Enum

from barnabas.broker.storage.cleaning.errors import CleaningAborted
from barnabas.protocol.topic_partition import TopicPartition

_ABORT_AGAIN_SECONDS = 0.1


class _Work(Enum):
    IN_PROGRESS = "in progress"
    ABORTED = "aborted"


class CleaningStates:
    """States of all partitions that are not free. Thread-safe."""

    def __init__(self, on_abort: Callable[[], None] = lambda: None) -> None:
        """`on_abort` is called when a round has to stop; it must wake the thread if that is asleep."""
        self._states: dict[TopicPartition, _Work | int] = {}
        """An int is the number of pauses."""
        self._condition = threading.Condition()
        self._on_abort = on_abort

    def claim(self, topic_partition: TopicPartition) -> bool:
        """Claim a free partition; return False if it is not free."""
        with self._condition:
            if topic_partition in self._states:
                return False
            self._states[topic_partition] = _Work.IN_PROGRESS
            return True

    def is_free(self, topic_partition: TopicPartition) -> bool:
        """Return whether the partition is free now."""
        return topic_partition not in self._states

    def release(self, topic_partition: TopicPartition, on_completed: Callable[[], None] = lambda: None) -> bool:
        """Release a claim; return False if it was aborted meanwhile.

        If it was not, `on_completed` is called first, while the partition is still claimed. The partition is released
        even if that raises.
        """
        with self._condition:
            state = self._states.get(topic_partition)
            assert isinstance(state, _Work), f"{topic_partition} is released in state {state}"
            try:
                if state is _Work.IN_PROGRESS:
                    on_completed()
                    return True
                return False
            finally:
                if state is _Work.IN_PROGRESS:
                    del self._states[topic_partition]
                else:
                    self._states[topic_partition] = 1
                self._condition.notify_all()

    def ensure_not_aborted(self, topic_partition: TopicPartition) -> None:
        """Raise CleaningAborted if the partition's claim was aborted."""
        if self._states.get(topic_partition) is _Work.ABORTED:
            raise CleaningAborted(f"{topic_partition} is needed by other work")

    def abort_and_pause(self, topic_partition: TopicPartition) -> None:
        """Abort a claim of the partition and prevent others until `resume`. Waits for the release.

        The thread may be asleep in the throttler for minutes, or just about to: it is woken repeatedly.
        """
        with self._condition:
            # A second caller waits for the first one's abort, then adds a pause. (Kafka throws.)
            self._condition.wait_for(lambda: self._states.get(topic_partition) is not _Work.ABORTED)
            state = self._states.get(topic_partition, 0)
            if isinstance(state, int):
                self._states[topic_partition] = state + 1
                return
            self._states[topic_partition] = _Work.ABORTED
            self._on_abort()
            while not self._condition.wait_for(
                lambda: isinstance(self._states.get(topic_partition), int), _ABORT_AGAIN_SECONDS
            ):
                self._on_abort()  # the thread may have been just about to sleep

    def resume(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Undo one pause of each partition."""
        with self._condition:
            for topic_partition in topic_partitions:
                state = self._states.get(topic_partition)
                assert isinstance(state, int), f"{topic_partition} is resumed in state {state}"
                if state == 1:
                    del self._states[topic_partition]
                else:
                    self._states[topic_partition] = state - 1

    def pause_free(self, topic_partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Pause the free ones of these partitions; return them."""
        paused = []
        with self._condition:
            for topic_partition in topic_partitions:
                if topic_partition not in self._states:
                    self._states[topic_partition] = 1
                    paused.append(topic_partition)
        return paused

    def describe(self, topic_partition: TopicPartition) -> str:
        """Return `idle`, `in progress`, `aborted` or `paused`, for operators."""
        state = self._states.get(topic_partition)
        if state is None:
            return "idle"
        return state.value if isinstance(state, _Work) else "paused"
