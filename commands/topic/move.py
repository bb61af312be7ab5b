"""Beginning a move of a partition and waiting for its end, for `barnabas partition move`."""

from __future__ import annotations

import asyncio
import os

from barnabas.clients.admin.admin import Admin, ReplicaDescription
from barnabas.commands.failures import CommandFailure
from barnabas.commands.progress import progress_bar
from barnabas.protocol.topic_partition import TopicPartition

_POLL_INTERVAL_S = 0.2


async def begin_move(admin: Admin, topic_partition: TopicPartition, log_dir: str) -> str | None:
    """The directory that the partition leaves; None when it is in `log_dir` already. Raises the broker's refusal."""
    before, _ = await _find(admin, topic_partition)
    (refusal,) = (await admin.alter_replica_log_dirs({topic_partition: log_dir})).values()
    if refusal is not None:
        raise refusal
    source, _ = _ensure_found(topic_partition, before)
    return None if _is_same(source, log_dir) else source


async def wait_for_move(admin: Admin, topic_partition: TopicPartition, log_dir: str) -> None:
    """Return when the partition is in `log_dir`. Raises CommandFailure when its move was given up or failed."""
    found, _ = await _find(admin, topic_partition)
    _, replica = _ensure_found(topic_partition, found)
    done = 0
    with progress_bar(f"moving {topic_partition}", total=replica.size_bytes, unit="bytes") as progress:
        while True:
            found, future = await _find(admin, topic_partition)
            path, _ = _ensure_found(topic_partition, found)
            if _is_same(path, log_dir):
                return
            if future is None or not _is_same(future[0], log_dir):
                # It is only over if the copy has not taken the partition's place between two directories' answers.
                found, _ = await _find(admin, topic_partition)
                path, _ = _ensure_found(topic_partition, found)
                if _is_same(path, log_dir):
                    return
                raise CommandFailure(
                    f"{topic_partition} is in {path} and not on its way to {log_dir} any more: the move was given up, "
                    "or it has failed and the broker's log says why"
                )
            progress.advance(max(future[1].size_bytes - done, 0))
            done = max(done, future[1].size_bytes)
            await asyncio.sleep(_POLL_INTERVAL_S)


_Found = tuple[str, ReplicaDescription]


async def _find(admin: Admin, topic_partition: TopicPartition) -> tuple[_Found | None, _Found | None]:
    """Where the partition is, and where its copy is if it has one."""
    current: _Found | None = None
    future: _Found | None = None
    for directory in await admin.describe_log_dirs([topic_partition]):
        for replica in directory.replicas:
            if replica.is_future:
                future = (directory.path, replica)
            else:
                current = (directory.path, replica)
    return current, future


def _ensure_found(topic_partition: TopicPartition, current: _Found | None) -> _Found:
    if current is None:
        raise CommandFailure(f"{topic_partition} is in no log directory that works")
    return current


def _is_same(one: str, other: str) -> bool:
    return os.path.normpath(one) == os.path.normpath(other)
