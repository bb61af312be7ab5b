"""Topics and where their partitions are."""

from __future__ import annotations

from typing import Any

from tests.support.answers.play import Play
from tests.support.answers.scripts.made import NOWHERE, filled, topic


def create_topics(play: Play) -> None:
    def asked(*names: str, validate_only: bool = False, **fields: Any) -> dict[str, Any]:
        entries = [{"name": name, "num_partitions": 1, "replication_factor": 1, **fields} for name in names]
        return {"topics": entries, "timeout": 1000, "validate_only": validate_only}

    def config(name: str, value: str | None) -> list[dict[str, Any]]:
        return [{"name": name, "value": value}]

    api = "create_topics"
    play.each(api, "success", lambda version: asked(f"created-{version}", configs=config("retention.ms", "7")))
    play.each(api, "success, only validated", asked("validated", validate_only=True))
    play.each(api, "it exists", asked("created-7"))
    play.each(api, "no such config", asked("refused", configs=config("nothing", "1")))
    play.each(api, "a config's value", asked("refused", configs=config("retention.ms", "x")))
    play.each(api, "a config without a value", asked("refused", configs=config("retention.ms", None)))
    play.last(api, "success, default counts", asked("defaults", num_partitions=-1, replication_factor=-1))
    play.each(api, "no partitions", asked("refused", num_partitions=0))
    play.each(api, "three replicas", asked("refused", replication_factor=3))
    play.each(api, "no replicas", asked("refused", replication_factor=0))
    play.each(api, "a name with a slash", asked("refused/x"))
    play.each(api, "an empty name", asked(""))
    play.last(api, "a name that collides", asked("created.7"))
    play.each(api, "a long name", asked("x" * 250))
    play.each(api, "a name twice", asked("twice", "twice"))
    placed = [{"partition_index": 0, "broker_ids": [1]}]
    default: dict[str, Any] = {"num_partitions": -1, "replication_factor": -1}
    play.last(api, "success, assigned", asked("assigned", assignments=placed, **default))
    play.each(api, "assigned and counted", asked("refused", assignments=placed))
    away = [{"partition_index": 0, "broker_ids": [9]}]
    play.each(api, "no such broker", asked("refused", assignments=away, **default))
    gap = [{"partition_index": 1, "broker_ids": [1]}]
    play.each(api, "a gap in the partitions", asked("refused", assignments=gap, **default))


def delete_topics(play: Play) -> None:
    def asked(name: str | None, topic_id: Any = None) -> dict[str, Any]:
        return {"topic_names": [name or ""], "topics": [{"name": name, "topic_id": topic_id}], "timeout": 1000}

    for version in range(1, 7):
        topic(play, f"deleted-{version}")
        play.ask("delete_topics", version, "success", asked(f"deleted-{version}"))
    play.last("delete_topics", "success, by id", asked(None, topic(play, "deleted-id")))
    play.each("delete_topics", "no such topic", asked("nowhere"))
    play.each("delete_topics", "no such id", asked(None, NOWHERE), since=6)
    play.each("delete_topics", "neither name nor id", asked(None), since=6)
    play.each("delete_topics", "both name and id", asked("defaults", NOWHERE), since=6)
    twice = {**asked("defaults"), "topic_names": ["defaults"] * 2, "topics": [{"name": "defaults"}] * 2}
    play.each("delete_topics", "a name twice", twice)


def metadata(play: Play) -> None:
    key = topic(play, "described", 2)
    operations = {f"include_{kind}_authorized_operations": True for kind in ("cluster", "topic")}

    def asked(*names: str | None, topic_id: Any = None, **fields: Any) -> dict[str, Any]:
        entries = [{"name": name, "topic_id": topic_id} for name in names]
        return {"topics": entries, "allow_auto_topic_creation": False, **fields}

    play.each("metadata", "success", asked("described", **operations))
    for version in range(1, 14):
        play.ask("metadata", version, "success, no topics", asked())
    for version in range(10, 14):
        play.ask("metadata", version, "success, by id", asked(None, topic_id=key))
        play.ask("metadata", version, "no such id", asked(None, topic_id=NOWHERE))
    for version in range(4, 14):
        play.ask("metadata", version, "no such topic", asked("nowhere"))
    play.each("metadata", "creates", lambda version: {**asked(f"new-{version}"), "allow_auto_topic_creation": True})
    play.each("metadata", "a name with a slash", asked("a/b"))
    play.each("metadata", "an empty name", asked(""))
    play.each("metadata", "neither name nor id", asked(None), since=10)
    play.each("metadata", "success, all topics", lambda version: {"topics": None if version else []})


def create_partitions(play: Play) -> None:
    topic(play, "widened", 1)

    def asked(name: str, count: int, assignments: Any = None, **fields: Any) -> dict[str, Any]:
        return {"topics": [{"name": name, "count": count, "assignments": assignments}], "timeout": 1000, **fields}

    play.each("create_partitions", "success", lambda version: asked("widened", version + 2))
    play.each("create_partitions", "success, only validated", asked("widened", 9, validate_only=True))
    play.each("create_partitions", "fewer", asked("widened", 1))
    play.each("create_partitions", "as many", asked("widened", 5))
    play.each("create_partitions", "no such topic", asked("nowhere", 3))
    play.last("create_partitions", "success, assigned", asked("widened", 6, [{"broker_ids": [1]}]))
    play.each("create_partitions", "no such broker", asked("widened", 7, [{"broker_ids": [9]}]))
    play.each("create_partitions", "too few assignments", asked("widened", 9, [{"broker_ids": [1]}]))
    twice = asked("widened", 8)
    play.each("create_partitions", "a name twice", {**twice, "topics": twice["topics"] * 2})


def describe_topic_partitions(play: Play) -> None:
    topic(play, "pages", 3)

    def asked(*names: str, **fields: Any) -> dict[str, Any]:
        return {"topics": [{"name": name} for name in names], **fields}

    api = "describe_topic_partitions"
    play.each(api, "success", asked("pages"))
    play.each(api, "success, a page", asked("pages", response_partition_limit=2))
    cursor = {"topic_name": "pages", "partition_index": 2}
    play.each(api, "success, the next page", asked("pages", cursor=cursor))
    play.each(api, "a cursor before the first", asked("pages", cursor={**cursor, "partition_index": -1}))
    play.each(api, "no such topic", asked("nowhere"))
    play.each(api, "a name with a slash", asked("a/b"))


def describe_log_dirs(play: Play) -> None:
    filled(play, "stored", 2)
    topics = [{"topic": "stored", "partitions": [0, 7]}]
    play.each("describe_log_dirs", "success", {"topics": topics})
    play.each("describe_log_dirs", "no such topic", {"topics": [{"topic": "nowhere", "partitions": [0]}]})
    play.each("describe_log_dirs", "success, no topics", {"topics": []})


def alter_replica_log_dirs(play: Play) -> None:
    topic(play, "moved")

    def asked(path: str, name: str = "moved") -> dict[str, Any]:
        return {"dirs": [{"path": path, "topics": [{"name": name, "partitions": [0]}]}]}

    play.each("alter_replica_log_dirs", "success, where it is", asked("/proc/self/cwd/data"))
    play.each("alter_replica_log_dirs", "no such directory", asked("/nowhere"))
    play.each("alter_replica_log_dirs", "no such topic", asked("/proc/self/cwd/data", "nowhere"))
    play.each("alter_replica_log_dirs", "a name with a slash", asked("/proc/self/cwd/data", "a/b"))
    play.each("alter_replica_log_dirs", "a relative directory", asked("data"))
    too_long = asked("/proc/self/cwd/data", "x" * 249)
    play.each("alter_replica_log_dirs", "a name too long for the directory of a copy", too_long)


def elect_leaders(play: Play) -> None:
    topic(play, "elected", 2)

    def asked(name: str | None, kind: int = 0, partition: int = 0) -> dict[str, Any]:
        topics = None if name is None else [{"topic": name, "partitions": [partition]}]
        return {"election_type": kind, "topic_partitions": topics, "timeout": 1000}

    play.each("elect_leaders", "success, not needed", asked("elected"))
    play.each("elect_leaders", "unclean", asked("elected", 1))
    play.each("elect_leaders", "no such type", asked("elected", 9))
    play.each("elect_leaders", "no such topic", asked("nowhere"))
    play.each("elect_leaders", "no such partition", asked("elected", 0, 7))
    play.each("elect_leaders", "success, all", asked(None))


def alter_partition_reassignments(play: Play) -> None:
    topic(play, "reassigned")

    def asked(name: str, replicas: Any, partition: int = 0) -> dict[str, Any]:
        partitions = [{"partition_index": partition, "replicas": replicas}]
        return {"timeout": 1000, "topics": [{"name": name, "partitions": partitions}]}

    api = "alter_partition_reassignments"
    play.each(api, "success, where it is", asked("reassigned", [1]))
    play.each(api, "nothing to cancel", asked("reassigned", None))
    play.each(api, "no such broker", asked("reassigned", [9]))
    play.each(api, "no replicas", asked("reassigned", []))
    play.each(api, "a broker twice", asked("reassigned", [1, 1]))
    play.each(api, "no such topic", asked("nowhere", [1]))
    play.each(api, "no such partition", asked("reassigned", [1], 7))


def list_partition_reassignments(play: Play) -> None:
    play.each("list_partition_reassignments", "success, all", {"topics": None})
    topics = [{"name": "reassigned", "partition_indexes": [0]}]
    play.each("list_partition_reassignments", "success, of a topic", {"topics": topics})
    topics = [{"name": "nowhere", "partition_indexes": [0]}]
    play.each("list_partition_reassignments", "no such topic", {"topics": topics})
