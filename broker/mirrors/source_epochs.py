"""SourceEpochs: the leader epochs of a partition at its source that no copied batch shows. No I/O.

A copy has the epochs of its batches. The source also has epochs in which nothing was written, and knows where an epoch
began whose first batches compaction has taken. Without them the copy could not answer a consumer whose position has
such an epoch, and the consumer would take its position for lost.

OffsetForLeaderEpoch answers the largest epoch up to the one that is asked for, and its end, which is the start of the
next epoch. So the questions go from the newest epoch down, one for each epoch. Below its first epoch a source answers
the epoch that was asked for and the start of its first one: two answers with the same end are at the bottom.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.storage.files.leader_epoch import EpochEntry

if TYPE_CHECKING:
    from barnabas.broker.mirrors.partition_copier import EpochEnd


class SourceEpochs:
    """What is known about one partition, and the next question."""

    def __init__(self) -> None:
        self._is_due = True
        self._confirmed: frozenset[EpochEntry] = frozenset()
        """Entries of an earlier round, which went down to the bottom."""
        self._found: list[EpochEntry] = []
        """Entries of this round, from the newest down."""
        self._question: int | None = None
        self._fallback: int | None = None
        self._epoch: int | None = None
        """The epoch of the last answer, whose start is not known yet."""

    def begin(self) -> None:
        """Ask again: the leader or the connection is another one."""
        self._is_due, self._question = True, None

    def question(self, newest: int, latest: int) -> int | None:
        """Return the epoch to ask for, None if nothing is to be asked.

        `newest`: the leader epoch of the source, -1 if it does not tell; `latest`: that of the copy's last batch.
        """
        if self._is_due:
            self._is_due = False
            self._found, self._epoch = [], None
            # A source that is a mirror itself may lead in an epoch that its log does not have yet.
            candidates = [each for each in dict.fromkeys((newest, latest)) if each >= 0]
            self._question = candidates[0] if candidates else None
            self._fallback = candidates[-1] if len(candidates) > 1 else None
        return self._question

    def answered(self, answer: EpochEnd, log_start: int) -> list[EpochEntry]:
        """Take in the answer to `question`; return the epochs and their starts, ordered, when this was the last one."""
        asked, self._question = self._question, None
        if asked is None:
            return []
        epoch, end = answer
        if epoch < 0 or end < 0 or epoch > asked:
            if self._epoch is None:
                self._question, self._fallback = self._fallback, None
                return []
            return self._done()
        above, self._epoch = self._epoch, epoch
        if above is not None:
            if self._found and end >= self._found[-1].start_offset:
                return self._done()
            entry = EpochEntry(above, end)
            self._found.append(entry)
            if end <= log_start or entry in self._confirmed:
                return self._done()
        if epoch == 0:
            return self._done()
        self._question = epoch - 1
        return []

    def give_up(self) -> None:
        """Ask nothing more until `begin`."""
        self._question = None

    def _done(self) -> list[EpochEntry]:
        self._confirmed |= frozenset(self._found)
        return self._found[::-1]
