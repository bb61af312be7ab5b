"""The work of `barnabas partition move`: starts a move of a partition and waits for its end."""

from __future__ import annotations

import asyncio
import os

from barnabas.clients.admin.admin import Admin, ReplicaDescription
from barnabas.clients.errors import UnknownTopicError
from barnabas.commands.failures import CommandFailure
from barnabas.commands.progress import progress_bar
from barnabas.protocol.topic_partition import TopicPartition

_POLL_INTERVAL_S = 0.2


async def begin_move(admin: Admin, topic_partition: TopicPartition, log_dir: str) -> str | None:
    """Start a move and return the partition's current directory; None if that is `log_dir`. Raises RefusedError."""
    before, _ = await _find(admin, topic_partition)
    (refusal,) = (await admin.alter_replica_log_dirs({topic_partition: log_dir})).values()
    if refusal is not None:
        raise refusal
    source, _ = _ensure_found(topic_partition, before)
    return None if _is_same(source, log_dir) else source


async def wait_for_move(admin: Admin, topic_partition: TopicPartition, log_dir: str) -> None:
    """Wait until the partition is in `log_dir`. Raises CommandFailure if its move was cancelled or has failed."""
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
                # The copy may have replaced the log between the answers of the two directories: look once more.
                found, _ = await _find(admin, topic_partition)
                path, _ = _ensure_found(topic_partition, found)
                if _is_same(path, log_dir):
                    return
                raise CommandFailure(
                    f"{topic_partition} is in {path} and no longer being moved to {log_dir}: the move was cancelled, "
                    "or has failed for a reason in the broker's log"
                )
            progress.advance(max(future[1].size_bytes - done, 0))
            done = max(done, future[1].size_bytes)
            await asyncio.sleep(_POLL_INTERVAL_S)


_Found = tuple[str, ReplicaDescription]


async def _find(admin: Admin, topic_partition: TopicPartition) -> tuple[_Found | None, _Found | None]:
    """The partition's log and its directory at its leader, and those of its copy during a move."""
    leader = await _leader(admin, topic_partition)
    current: _Found | None = None
    future: _Found | None = None
    for directory in await admin.describe_log_dirs([topic_partition]):
        for replica in directory.replicas if directory.broker == leader else ():
            if replica.is_future:
                future = (directory.path, replica)
            else:
                current = (directory.path, replica)
    return current, future


async def _leader(admin: Admin, topic_partition: TopicPartition) -> int:
    """Return the partition's leader, -1 without one: the request to move it is then refused."""
    try:
        described = await admin.describe_topic(topic_partition.topic)
    except UnknownTopicError:
        return -1
    return next((each.leader for each in described.partitions if each.partition == topic_partition.partition), -1)


def _ensure_found(topic_partition: TopicPartition, current: _Found | None) -> _Found:
    if current is None:
        raise CommandFailure(f"{topic_partition} is in none of the online log directories")
    return current


def _is_same(one: str, other: str) -> bool:
    return os.path.normpath(one) == os.path.normpath(other)
