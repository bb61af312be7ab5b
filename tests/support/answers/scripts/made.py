"""What scripts have to make before they ask: topics, producers, members."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from barnabas.protocol.messages.security.resources import PatternType, Permission
from tests.support.answers.batches import batch
from tests.support.answers.play import Play
from tests.support.authorization.rows import Grant

ANYTHING = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
"""A filter of all ACLs."""

NOWHERE = UUID(int=12345)
"""The id of no topic."""


def topic(play: Play, name: str, partitions: int = 1, **configs: str) -> UUID:
    """Create a topic and return its id; `configs` with underscores for dots."""
    entry = {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": 1,
        "configs": [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()],
    }
    (made,) = play.quiet("create_topics", {"topics": [entry], "timeout": 1000}).topics
    assert made.error_code.value == 0, made
    found: UUID = made.topic_id
    return found


def produced(
    name: str, topic_id: UUID | None, records: bytes | None, *, partition: int = 0, **fields: Any
) -> dict[str, Any]:
    """Return a Produce request of one batch."""
    data = {"index": partition, "records": records}
    topics = [{"name": name, "topic_id": topic_id, "partition_data": [data]}]
    return {"acks": 1, "timeout": 1000, "topic_data": topics, **fields}


def filled(play: Play, name: str, batches: int = 1, partitions: int = 1, **configs: str) -> UUID:
    """Create a topic with single-record batches in partition 0, and return its id."""
    topic_id = topic(play, name, partitions, **configs)
    for _ in range(batches):
        play.quiet("produce", produced(name, topic_id, batch()))
    return topic_id


def producer(play: Play, transactional_id: str | None) -> tuple[int, int]:
    """Return the id and epoch of a new producer."""
    answer = play.quiet("init_producer_id", {"transactional_id": transactional_id, "transaction_timeout": 60_000})
    assert answer.error_code.value == 0, answer
    return answer.producer_id, answer.producer_epoch


def joined(play: Play, group: str, **fields: Any) -> tuple[str, int]:
    """Join a classic group as its only member, synchronise, and return the member's id and the generation."""
    values = {
        "group_id": group,
        "session_timeout": 60_000,
        "rebalance_timeout": 60_000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": SUBSCRIPTION}],
        **fields,
    }
    answer = play.quiet("join_group", values)
    if not answer.member_id or answer.error_code.value == 79:
        answer = play.quiet("join_group", {**values, "member_id": answer.member_id})
    assert answer.error_code.value == 0, answer
    play.quiet(
        "sync_group",
        {
            "group_id": group,
            "generation_id": answer.generation_id,
            "member_id": answer.member_id,
            "group_instance_id": fields.get("group_instance_id"),
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [{"member_id": answer.member_id, "assignment": b"\0\0\0\0\0\0\0\0\0\0"}],
        },
    )
    return answer.member_id, answer.generation_id


@contextmanager
def rights(play: Play, *grants: Grant) -> Iterator[None]:
    """Let the user `nobody` do something until the block ends."""
    acls = [
        {
            "resource_type": kind.value,
            "resource_name": name,
            "resource_pattern_type": PatternType.LITERAL.value,
            "principal": "User:nobody",
            "host": "*",
            "operation": operation.value,
            "permission_type": Permission.ALLOW.value,
        }
        for kind, name, operation in grants
    ]
    play.quiet("create_acls", {"creations": acls})
    yield
    play.quiet("delete_acls", {"filters": [{**ANYTHING, "principal_filter": "User:nobody"}]})


SUBSCRIPTION = bytes.fromhex("0000 00000001 0006 6f7264657273 00000000")
"""ConsumerProtocolSubscription 0 of the topic `orders`."""


def commit(name: str, topic_id: UUID | None, offset: int = 1, partition: int = 0, metadata: str = "m") -> Any:
    """Return the topics of a commit; `topic_id` None for an API without ids."""
    entry = {"partition_index": partition, "committed_offset": offset, "committed_metadata": metadata}
    key = {"name": name} if topic_id is None else {"name": name, "topic_id": topic_id}
    return [{**key, "partitions": [entry]}]
