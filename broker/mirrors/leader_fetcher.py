"""The copies that have the same leader at the source: one connection, one request at a time.

The next request is sent when the records of the last answer are appended, so that a slow disk slows the source's
answers down instead of filling the memory. Appends run on a thread of the mirror, with all partitions of an answer in
one call; the event loop only decides and wakes waiting fetches. In a standby, which serves nobody, the event loop also
makes small appends that are not synced: a thread would cost several times as much, and producers may wait for them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.broker.mirrors.common_end import find_common_end
from barnabas.broker.mirrors.copied_log import CopiedChange
from barnabas.broker.mirrors.epoch_questions import ask_for_epochs
from barnabas.broker.mirrors.partition_copier import (
    REFUSED_RETRY_SECONDS,
    RETRY_SECONDS,
    Action,
    Append,
    EpochEnd,
    Fail,
    FindCommonEnd,
    FindEpochEnd,
    FindLeader,
    FindOffsets,
    FindTopic,
    RaiseStart,
    Restart,
    Truncate,
)
from barnabas.broker.storage.files.errors import StorageError
from barnabas.clients.errors import ClientError
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.mirrors.definition import LATEST
from barnabas.protocol.records.errors import CorruptRecordError

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from barnabas.broker.mirrors.byte_rate import ByteRate
    from barnabas.broker.mirrors.common_end import CommonEnd
    from barnabas.broker.mirrors.copied_log import LogAction
    from barnabas.broker.mirrors.mirrored_partition import MirroredPartition
    from barnabas.broker.mirrors.partition_copier import FetchedPartition
    from barnabas.broker.mirrors.source import SourceNode
    from barnabas.protocol.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

MAX_WAIT_MS: Final = 500
MAX_BYTES: Final = 8 * 1024 * 1024
PARTITION_BYTES: Final = 1024 * 1024
_SMALL_BYTES: Final = 256 * 1024
"""Of an answer. Larger ones show that the copy is behind."""
_FIRST_BACKOFF_SECONDS: Final = 0.1
_LONGEST_BACKOFF_SECONDS: Final = 10.0

_Work = list[tuple["MirroredPartition", Sequence["LogAction"]]]


class LeaderFetcher:
    """Copies from one broker of the source. Event loop only."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[SourceNode]],
        executor: Executor,
        rate: ByteRate,
        *,
        on_lost: Callable[[], None],
        interval_seconds: float = 0.0,
        lost_retry_seconds: float = RETRY_SECONDS,
        inline_bytes: int = 0,
        copies_anew: bool = False,
        follows_epochs: bool = False,
    ) -> None:
        """`on_lost` is called when the metadata of the source has to be looked at again.

        `interval_seconds`: the shortest time between two requests while answers are small. A source that gets a record
        each millisecond is then asked 200 times a second instead of 1,000 times, for a few milliseconds of delay.
        `lost_retry_seconds`: before a partition that the leader does not serve is fetched again.
        `inline_bytes`: of an answer, up to which unsynced appends are made in the event loop.
        `copies_anew`: a compacted partition that may lack tombstones is copied again from the source's start.
        `follows_epochs`: copies get the leader epochs of the source that their batches do not show.
        """
        self._copies_anew = copies_anew
        self._follows_epochs = follows_epochs
        self._inline_bytes = inline_bytes
        self._lost_retry_seconds = lost_retry_seconds
        self._connect = connect
        self._executor = executor
        self._rate = rate
        self._on_lost = on_lost
        self._interval_seconds = interval_seconds
        self._partitions: dict[TopicPartition, MirroredPartition] = {}
        self._changed = asyncio.Event()
        self._node: SourceNode | None = None
        self.answered_at: float | None = None
        """When the leader has answered last, in seconds of the event loop; None before the first answer."""
        self.error: str | None = None
        """Why the broker cannot be reached, or None."""

    @property
    def keys(self) -> frozenset[TopicPartition]:
        """The partitions that are copied from this leader."""
        return frozenset(self._partitions)

    def add(self, partition: MirroredPartition) -> None:
        """Copy a partition from this leader."""
        self._partitions[partition.key] = partition
        partition.begin()
        self._changed.set()

    def remove(self, key: TopicPartition) -> None:
        """Stop copying a partition from this leader; a request in flight is dropped."""
        partition = self._partitions.pop(key, None)
        if partition is not None:
            partition.note_caught_up_until(self.answered_at)

    async def run(self) -> None:
        """Copy until cancelled."""
        backoff = _FIRST_BACKOFF_SECONDS
        try:
            while True:
                try:
                    self._node = await self._connect()
                    self.error = None
                    for partition in self._partitions.values():
                        partition.begin()
                    while True:
                        await self._round(self._node)
                        backoff = _FIRST_BACKOFF_SECONDS
                except ClientError as error:
                    self.error = str(error)
                    self._on_lost()
                except Exception as error:
                    logger.exception("a bug: a mirror's leader is tried again")
                    self.error = f"a bug, see the broker's log: {error!r}"
                finally:
                    self._disconnect()
                await asyncio.sleep(backoff)
                backoff = min(2 * backoff, _LONGEST_BACKOFF_SECONDS)
        finally:
            self._disconnect()

    def _disconnect(self) -> None:
        if self._node is not None:
            self._node.close()
            self._node = None

    async def _round(self, node: SourceNode) -> None:
        """Send one Fetch, and carry out what its answer means. Raises ClientError."""
        now = self._now()
        ready = [each for each in self._partitions.values() if each.resume_at <= now and not each.is_changing]
        self._changed.clear()
        if not ready:
            await self._wait_for_work(now)
            return
        await self._begin(node, ready)
        waits = [each.resume_at - now for each in self._partitions.values() if each.resume_at > now]
        wait_ms = min([MAX_WAIT_MS, *(int(1000 * each) + 1 for each in waits)])
        current = [each for each in self._partitions.values() if each.is_current]
        if self._follows_epochs and await ask_for_epochs(node, current, self._executor, self._has):
            wait_ms = 0  # there is another question
        fetched = {each.key: each for each in ready if each.is_begun and each.resume_at <= now and self._has(each)}
        if not fetched:
            return
        requested = {key: each.fetch_from(PARTITION_BYTES) for key, each in fetched.items()}
        answers = await node.fetch(requested, max_wait_ms=wait_ms, max_bytes=MAX_BYTES)
        # A partition may have got another leader meanwhile, or its topic may have been deleted and created again. In
        # another epoch of the same leader, the copy has to be compared with it before the next append.
        answered = [
            (partition, answer)
            for key, answer in answers.items()
            if (partition := fetched.get(key)) is not None and self._has_begun(partition)
        ]
        for partition, answer in answered:
            if answer.records or answer.error is not ErrorCode.NONE:
                partition.note_caught_up_until(self.answered_at)
        self.answered_at = self._now()
        await self._apply(node, answered)
        size = sum(len(each.records) for each in answers.values())
        pause = self._rate.seconds_after(size, now)
        if 0 < size < _SMALL_BYTES:
            pause = max(pause, now + self._interval_seconds - self._now())
        if pause > 0:
            await asyncio.sleep(pause)

    async def _begin(self, node: SourceNode, partitions: Sequence[MirroredPartition]) -> None:
        """Compare copies with this leader before they are fetched, with one request for the epochs of all of them."""
        epochs: dict[MirroredPartition, int] = {}
        for partition in partitions:
            if partition.starts_at is not None and self._has(partition):
                await self._start(node, partition, partition.starts_at)
            if partition.starts_at is not None or partition.is_begun or not self._has(partition):
                continue
            # Before the comparison: another leader that is found meanwhile requires another one.
            partition.is_begun = True
            match partition.copier.begin(partition.log):
                case [FindEpochEnd(epoch)]:
                    epochs[partition] = epoch
                case actions:
                    await self._carry_out(node, partition, actions)
        if epochs:
            for partition, actions in (await self._compare_epochs(node, epochs)).items():
                await self._carry_out(node, partition, actions)

    async def _compare_epochs(
        self, node: SourceNode, epochs: Mapping[MirroredPartition, int]
    ) -> dict[MirroredPartition, list[Action]]:
        """Ask where a leader epoch of each partition ends; return what follows. Raises ClientError.

        Nothing follows for a partition that has another leader, or another epoch of this one, by then.
        """
        ends = await node.epoch_ends(
            {each.key: epoch for each, epoch in epochs.items()}, {each.key: each.leader_epoch for each in epochs}
        )
        found: dict[MirroredPartition, list[Action]] = {}
        for partition in epochs:
            end = ends[partition.key]
            if not self._has_begun(partition):
                found[partition] = []
            elif isinstance(end, EpochEnd):
                found[partition] = partition.copier.epoch_end_found(end, partition.log)
            else:
                partition.is_begun = False  # a fetch without the comparison could append to diverged records
                found[partition] = partition.copier.refused(end)
        return found

    async def _start(self, node: SourceNode, partition: MirroredPartition, start: str) -> None:
        """Let a new copy begin at the source's end, or at a time. Raises ClientError; the start is still due then."""
        key = partition.key
        if partition.log.end == 0:
            found = (await node.offset_ranges([key]))[key]
            offset = found.end
            if start != LATEST and found.error is ErrorCode.NONE:
                found = (await node.offsets_at([key], int(start)))[key]
                offset = found.start if found.start >= 0 else offset
            if found.error is not ErrorCode.NONE:
                await self._carry_out(node, partition, partition.copier.refused(found.error))
                return
            if not self._has(partition):
                return
            if offset > 0:
                await self._change_logs([(partition, [Restart(offset, 0)])])
                if partition.log.end != offset:
                    return  # it has failed, and is tried again
        partition.starts_at = None

    async def _wait_for_work(self, now: float) -> None:
        until = min((each.resume_at for each in self._partitions.values()), default=now + 3600)
        try:
            async with asyncio.timeout(max(0.001, until - now)):
                await self._changed.wait()
        except TimeoutError:
            return

    async def _apply(self, node: SourceNode, answers: Sequence[tuple[MirroredPartition, FetchedPartition]]) -> None:
        work: _Work = []
        later: list[tuple[MirroredPartition, list[Action]]] = []
        for partition, answer in answers:
            actions = self._copied_anew(partition, answer) or partition.copier.fetched(answer, partition.log)
            changes = [each for each in actions if isinstance(each, Append | RaiseStart | Restart | Truncate)]
            if len(changes) < len(actions):
                later.append((partition, actions))
            elif changes:
                work.append((partition, changes))
                # The next request begins with the partitions that had nothing: no partition starves the others.
                self._partitions[partition.key] = self._partitions.pop(partition.key)
        if work:
            await self._change_logs(work)
        now = self._now()
        for partition, answer in answers:
            # Without `is_begun` it has got another epoch meanwhile, in which it is not compared yet.
            if self._has_begun(partition) and answer.error is ErrorCode.NONE and partition.resume_at <= now:
                partition.note_source(answer.high_watermark, now)
        for partition, actions in later:
            await self._carry_out(node, partition, actions)

    def _copied_anew(self, partition: MirroredPartition, answer: FetchedPartition) -> list[Action]:
        """Return the action for a compacted partition that was behind for too long; none for all others."""
        now = self._now()
        try:
            if not (self._copies_anew and answer.records and partition.may_lack_tombstones(answer, now)):
                return []
        except CorruptRecordError:
            return []  # the copier says so
        caught_up_at = partition.caught_up_at
        assert caught_up_at is not None, "the partition was behind"
        reason = (
            f"it was behind for {now - caught_up_at:.0f} s, longer than delete.retention.ms, and the source has "
            "compacted what it lacks, perhaps with deletions of keys that the copy still has"
        )
        return [Restart(answer.log_start_offset, 0, reason)]

    async def _carry_out(self, node: SourceNode, partition: MirroredPartition, actions: Sequence[Action]) -> None:
        """Carry out actions of one partition, with further requests where they are needed. Raises ClientError.

        Nothing is done for a partition that is copied from another leader, or in another epoch of this one, by now.
        """
        queue = list(actions)
        while queue and self._has(partition):
            action = queue.pop(0)
            key, log, copier = partition.key, partition.log, partition.copier
            match action:
                case Append() | RaiseStart() | Restart() | Truncate():
                    await self._change_logs([(partition, [action])])
                case FindOffsets():
                    found = (await node.offset_ranges([key]))[key]
                    if not self._has_begun(partition):
                        return
                    if found.error is ErrorCode.NONE:
                        queue += copier.offsets_found(found.start, found.end, log)
                    else:
                        queue += copier.refused(found.error)
                case FindEpochEnd(epoch):
                    queue += (await self._compare_epochs(node, {partition: epoch}))[partition]
                case FindCommonEnd():
                    try:
                        common: CommonEnd | ErrorCode | Fail = await find_common_end(node, partition)
                    except BrokerError as error:  # the copy itself cannot be read
                        common = Fail(str(error), REFUSED_RETRY_SECONDS)
                    if not self._has_begun(partition):
                        return
                    if isinstance(common, Fail):
                        partition.is_begun = False
                        queue.append(common)
                    elif isinstance(common, ErrorCode):
                        partition.is_begun = False
                        queue += copier.refused(common)
                    else:
                        queue += copier.common_end_found(common.offset, log)
                        if not queue:
                            # The session leaves a partition without news out of its answers from now on.
                            partition.note_source(common.source_end, self._now())
                case FindLeader() | FindTopic():
                    partition.resume_at = self._now() + self._lost_retry_seconds
                    self._on_lost()
                case Fail(reason, retry_seconds):
                    self._fail(partition, reason, retry_seconds)

    def _has(self, partition: MirroredPartition | None) -> bool:
        """Return whether a partition is still copied from this leader: after a wait it may not be."""
        return partition is not None and self._partitions.get(partition.key) is partition

    def _has_begun(self, partition: MirroredPartition) -> bool:
        """Return whether an answer is for the present leader and epoch of a partition."""
        return self._has(partition) and partition.is_begun

    async def _change_logs(self, work: _Work) -> None:
        if self._is_inline(work):
            self._publish(work, _change_logs(work))
            return
        loop = asyncio.get_running_loop()
        for partition, _ in work:
            partition.is_changing = True
        # Shielded: an append that runs on the thread must be published although this fetcher is cancelled.
        done = asyncio.ensure_future(loop.run_in_executor(self._executor, _change_logs, work))
        done.add_done_callback(lambda each: self._changed_on_thread(work, each))
        try:
            await asyncio.shield(done)
        except asyncio.CancelledError:
            await asyncio.wait([done])  # the log has another appender once this task has ended
            raise

    def _changed_on_thread(self, work: _Work, done: asyncio.Future[list[CopiedChange | str]]) -> None:
        for partition, _ in work:
            partition.is_changing = False
        if not done.cancelled() and done.exception() is None:  # a bug is raised where the result is waited for
            self._publish(work, done.result())

    def _is_inline(self, work: _Work) -> bool:
        left = self._inline_bytes
        for partition, actions in work:
            for action in actions:
                if not isinstance(action, Append) or partition.log.syncs_appends:
                    return False
                left -= len(action.records)
        return left > 0

    def _publish(self, work: _Work, outcomes: Sequence[CopiedChange | str]) -> None:
        for (partition, actions), outcome in zip(work, outcomes, strict=True):
            if isinstance(outcome, CopiedChange):
                partition.log.publish(outcome)
                partition.bytes_copied += outcome.bytes
                if any(isinstance(each, Restart) and each.reason for each in actions):
                    partition.note_copied_anew(self._now())
                if outcome.bytes:
                    partition.copier.appended()
            else:
                partition.log.publish(CopiedChange(has_cut=True))  # whole batches before the damage are appended
                if any(isinstance(each, Restart | Truncate) for each in actions):
                    partition.is_begun = False  # a fetch without the comparison could append to diverged records
                for action in partition.copier.damaged(outcome):
                    assert isinstance(action, Fail)
                    self._fail(partition, action.reason, action.retry_seconds)

    def _fail(self, partition: MirroredPartition, reason: str, retry_seconds: float) -> None:
        if partition.error != reason:
            level = logging.WARNING if retry_seconds >= REFUSED_RETRY_SECONDS else logging.INFO
            logger.log(level, "%s is not copied, trying again in %g s: %s", partition.key, retry_seconds, reason)
        partition.note_caught_up_until(self.answered_at)
        partition.fail(reason, self._now() + retry_seconds)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


def _change_logs(work: _Work) -> list[CopiedChange | str]:
    """Carry out the actions of several partitions; return what changed, or a clause that says what failed. Blocks."""
    outcomes: list[CopiedChange | str] = []
    for partition, actions in work:
        try:
            outcomes.append(partition.log.carry_out(actions))
        except (BrokerError, StorageError, OSError) as error:
            outcomes.append(str(error))
    return outcomes
