"""Who works on a partition's segments: a cleaner thread, somebody who paused it, or nobody.

    nobody ----claim----> in progress ----release----> nobody
       |                      |
       | abort_and_pause      | abort_and_pause: aborted; its thread sees that (`ensure_not_aborted`) and lets go
       v                      v
    paused(1) <---release--- aborted
       ^ |
       | | abort_and_pause: paused(n + 1), resume: paused(n - 1), and nobody after the last
       +-+

`abort_and_pause` returns when the partition is paused: nobody works on it, and nobody will. A claim is for a round of
the cleaner or for the deletion of old segments, on compacted partitions by a cleaner thread and on others by the
retention task, so that the two never meet when a topic's cleanup.policy changes. Source: Kafka LogCleanerManager,
LogCleaningState.
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
    """The state of every partition that has one. Thread-safe."""

    def __init__(self, on_abort: Callable[[], None] = lambda: None) -> None:
        """`on_abort` is called when a round was asked to stop: whatever its thread sleeps in should end."""
        self._states: dict[TopicPartition, _Work | int] = {}
        """An int says how often the partition is paused."""
        self._condition = threading.Condition()
        self._on_abort = on_abort

    def claim(self, topic_partition: TopicPartition) -> bool:
        """Take a partition that nobody has; false if somebody has it."""
        with self._condition:
            if topic_partition in self._states:
                return False
            self._states[topic_partition] = _Work.IN_PROGRESS
            return True

    def is_free(self, topic_partition: TopicPartition) -> bool:
        """Whether nobody has it, at this moment."""
        return topic_partition not in self._states

    def release(self, topic_partition: TopicPartition, on_completed: Callable[[], None] = lambda: None) -> bool:
        """The claim's work has ended; whether nobody aborted it meanwhile.

        Only then `on_completed` is called, before anybody else can take the partition. What it raises is the caller's;
        the partition is released all the same.
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
        """Raises CleaningAborted once somebody wants the partition."""
        if self._states.get(topic_partition) is _Work.ABORTED:
            raise CleaningAborted(f"{topic_partition} is wanted by somebody else")

    def abort_and_pause(self, topic_partition: TopicPartition) -> None:
        """End what goes on with the partition and keep everybody off until `resume`. Waits for the thread's release."""
        with self._condition:
            # A second caller waits for the first one's abort, then pauses once more. (Kafka throws.)
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
                self._on_abort()  # its thread may just have been on its way to sleep

    def resume(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Undo one pause of each."""
        with self._condition:
            for topic_partition in topic_partitions:
                state = self._states.get(topic_partition)
                assert isinstance(state, int), f"{topic_partition} is resumed in state {state}"
                if state == 1:
                    del self._states[topic_partition]
                else:
                    self._states[topic_partition] = state - 1

    def pause_free(self, topic_partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Pause those that nobody has, once; which they are."""
        paused = []
        with self._condition:
            for topic_partition in topic_partitions:
                if topic_partition not in self._states:
                    self._states[topic_partition] = 1
                    paused.append(topic_partition)
        return paused

    def describe(self, topic_partition: TopicPartition) -> str:
        """For people: `idle`, `in progress`, `aborted` or `paused`."""
        state = self._states.get(topic_partition)
        if state is None:
            return "idle"
        return state.value if isinstance(state, _Work) else "paused"
