"""Asks a leader for the epochs of complete copies, one question for each partition at a time, and writes them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.mirrors.partition_copier import EpochEnd

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from barnabas.broker.mirrors.mirrored_partition import MirroredPartition
    from barnabas.broker.mirrors.source import SourceNode
    from barnabas.broker.storage.files.leader_epoch import EpochEntry

logger = logging.getLogger(__name__)

_Found = list[tuple["MirroredPartition", Sequence["EpochEntry"]]]


async def ask_for_epochs(
    node: SourceNode,
    partitions: Iterable[MirroredPartition],
    executor: Executor,
    has: Callable[[MirroredPartition], bool],
) -> bool:
    """Ask one question about each partition that has one; return whether another is left. Raises ClientError.

    `has` says whether a partition is still copied from this leader. Otherwise the answer is not for it: the next leader
    may have been asked another question meanwhile.
    """
    asked = _questions(partitions)
    if not asked:
        return False
    answers = await node.epoch_ends(
        {each.key: epoch for each, epoch in asked.items()}, {each.key: each.leader_epoch for each in asked}
    )
    found: _Found = []
    for partition in [each for each in asked if has(each) and not each.is_changing]:
        answer = answers[partition.key]
        if not isinstance(answer, EpochEnd):
            partition.epochs.give_up()  # until the next leader or connection
        elif partition.is_current and (entries := partition.epochs.answered(answer, partition.log.start)):
            found.append((partition, entries))
    if found:
        for partition, _ in found:
            partition.is_changing = True
        done = asyncio.ensure_future(asyncio.get_running_loop().run_in_executor(executor, _write, found))
        done.add_done_callback(lambda _: _written(found))
        try:
            await asyncio.shield(done)
        except asyncio.CancelledError:
            await asyncio.wait([done])  # the log is changed by others once this task has ended
            raise
    return bool(_questions(each for each in asked if has(each)))


def _questions(partitions: Iterable[MirroredPartition]) -> dict[MirroredPartition, int]:
    asked: dict[MirroredPartition, int] = {}
    for each in partitions:
        can_ask = each.is_current and not each.is_changing
        question = each.epochs.question(each.leader_epoch, each.log.latest_epoch) if can_ask else None
        if question is not None:
            asked[each] = question
    return asked


def _write(found: _Found) -> None:
    for partition, entries in found:
        if not partition.is_current:
            continue  # it has another leader by now, which is asked anew
        try:
            partition.log.follow_epochs(entries)
        except OSError as error:
            logger.error("%s: leader epochs of the source cannot be written: %s", partition.key, error)


def _written(found: _Found) -> None:
    for partition, _ in found:
        partition.is_changing = False
