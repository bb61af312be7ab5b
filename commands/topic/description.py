"""Description of a topic for `barnabas topic describe`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from barnabas.commands.config_entries import entry_json, is_topics_own
from barnabas.commands.output import print_line, print_table
from barnabas.commands.topic.partition_offsets import earliest_and_latest
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.clients.admin.admin import Admin
    from barnabas.clients.admin.log_dirs import ReplicaDescription
    from barnabas.protocol.messages.cluster.configs import ConfigEntry


async def description_of(admin: Admin, name: str, all_configs: bool) -> dict[str, Any]:
    """Return the topic as JSON. Raises what the admin raises.

    `configs` is None for a client without DESCRIBE_CONFIGS on the topic. Cleaning states need DESCRIBE on the cluster;
    without it they are None.
    """
    found = await admin.describe_topic(name)
    usable = [entry.partition for entry in found.partitions if entry.error is ErrorCode.NONE and entry.leader >= 0]
    offsets = await earliest_and_latest(admin, name, usable)
    configs = await _configs(admin, name)
    is_compacted = any(entry.name == "cleanup.policy" and "compact" in (entry.value or "") for entry in configs or ())
    cleaning = await _cleaning(admin, name, usable) if is_compacted else {}
    partitions = []
    for entry in found.partitions:
        earliest, latest = offsets.get(entry.partition, (None, None))
        partitions.append(
            {
                "partition": entry.partition,
                "leader": entry.leader if entry.leader >= 0 else None,
                "leader_epoch": entry.leader_epoch,
                "earliest": earliest,
                "latest": latest,
                **_cleaning_fields(cleaning.get(entry.partition)),
                "error": None if entry.error is ErrorCode.NONE else entry.error.name,
            }
        )
    return {
        "topic": found.name,
        "topic_id": found.topic_id,
        "partitions": partitions,
        "configs": None
        if configs is None
        else [entry_json(entry) for entry in configs if all_configs or is_topics_own(entry)],
    }


def print_description(description: dict[str, Any], *, is_first: bool) -> None:
    """Print the description for people."""
    if not is_first:
        print_line("")
    print_line(f"topic {description['topic']}, id {description['topic_id']}")
    columns = ["partition", "leader", "leader epoch", "earliest", "latest"]
    keys = ["partition", "leader", "leader_epoch", "earliest", "latest"]
    if any(entry["cleaning"] for entry in description["partitions"]):
        columns += ["clean to", "dirty", "cleaning"]
        keys += ["clean_offset", "dirty_ratio", "cleaning"]
    if any(entry["error"] for entry in description["partitions"]):
        columns.append("error")
        keys.append("error")
    print_table(columns, [[entry[key] for key in keys] for entry in description["partitions"]])
    print_line("")
    if description["configs"] is None:
        print_line("properties are not shown: they need DESCRIBE_CONFIGS on the topic, which this client does not have")
    elif description["configs"]:
        print_table(
            ("property", "value", "from"),
            [(entry["name"], entry["value"], entry["source"]) for entry in description["configs"]],
        )
    else:
        print_line("all properties are the broker's (--all-configs shows them)")


async def _configs(admin: Admin, name: str) -> list[ConfigEntry] | None:
    try:
        return await admin.describe_configs(topic=name)
    except BrokerError as error:
        if error.code is not ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise
        return None


async def _cleaning(admin: Admin, name: str, partitions: Sequence[int]) -> dict[int, ReplicaDescription]:
    """Each partition's log of a compacted topic, with its cleaning state; copies that moves fill are left out."""
    try:
        directories = await admin.describe_log_dirs([TopicPartition(name, number) for number in partitions])
    except BrokerError as error:
        if error.code is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise
        return {}
    return {
        replica.topic_partition.partition: replica
        for directory in directories
        for replica in directory.replicas
        if not replica.is_future
    }


def _cleaning_fields(replica: ReplicaDescription | None) -> dict[str, Any]:
    """Cleaning state as JSON; all None for a log that is not compacted."""
    if replica is None or not replica.cleaning_state:
        return {"clean_offset": None, "dirty_ratio": None, "cleaning": None}
    return {
        "clean_offset": replica.clean_offset if replica.clean_offset >= 0 else None,
        "dirty_ratio": round(replica.dirty_ratio, 3) if replica.dirty_ratio >= 0 else None,
        "cleaning": replica.cleaning_state,
    }
