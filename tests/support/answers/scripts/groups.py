"""Offsets, and the groups of the classic and the consumer protocol, of streams and of shares."""

from __future__ import annotations

from typing import Any

from tests.support.answers.play import Play
from tests.support.answers.scripts.made import NOWHERE, SUBSCRIPTION, commit, filled, joined, producer, topic
from tests.support.eventually import eventually

_TOO_LONG = "m" * 4097


def find_coordinator(play: Play) -> None:
    def asked(key: str, kind: int = 0) -> dict[str, Any]:
        return {"key": key, "key_type": kind, "coordinator_keys": [key, f"{key}-2"]}

    play.each("find_coordinator", "success, of a group", asked("found"))
    play.each("find_coordinator", "success, of a transactional id", asked("found-tx", 1))
    play.each("find_coordinator", "of a share partition", asked(f"g:{'A' * 21}Q:0", 2))
    play.last("find_coordinator", "not a share partition", asked("g", 2))
    play.each("find_coordinator", "no such type", asked("x", 9))
    play.last("find_coordinator", "an empty group", asked(""))


def offset_commit(play: Play) -> None:
    key = topic(play, "committed")

    def asked(group: str, name: str = "committed", topic_id: Any = key, **fields: Any) -> dict[str, Any]:
        known = {"offset", "partition", "metadata"}
        entry = {each: value for each, value in fields.items() if each in known}
        rest = {each: value for each, value in fields.items() if each not in known}
        own = {"generation_id_or_member_epoch": -1, "retention_time": -1}
        return {"group_id": group, **own, "topics": commit(name, topic_id, **entry), **rest}

    play.each("offset_commit", "success", asked("committing"))
    play.each("offset_commit", "no such topic", asked("committing", "nowhere", NOWHERE))
    play.last("offset_commit", "no such partition", asked("committing", partition=7))
    play.last("offset_commit", "metadata too long", asked("committing", metadata=_TOO_LONG))
    play.last("offset_commit", "an empty group", asked(""))
    play.each(
        "offset_commit",
        "no such member",
        asked("committing", member_id="nobody", generation_id_or_member_epoch=1),
    )
    member, generation = joined(play, "commit-joined")
    own: dict[str, Any] = {"member_id": member, "generation_id_or_member_epoch": generation}
    play.each("offset_commit", "success, of a member", asked("commit-joined", **own))
    old = {**own, "generation_id_or_member_epoch": 99}
    play.each("offset_commit", "another generation", asked("commit-joined", **old))
    play.each("offset_commit", "another member", asked("commit-joined", **{**own, "member_id": "nobody"}))
    play.last("offset_commit", "not of a member", asked("commit-joined"))
    own = {"member_id": "nobody", "group_instance_id": "i", "generation_id_or_member_epoch": 1}
    play.last("offset_commit", "no such instance", asked("commit-joined", **own))
    beat = _consumer("commit-consumer")
    joined_member = play.quiet("consumer_group_heartbeat", beat)
    own = {"member_id": beat["member_id"], "generation_id_or_member_epoch": joined_member.member_epoch}
    play.each("offset_commit", "of a consumer group's member", asked("commit-consumer", **own))
    own["generation_id_or_member_epoch"] = 0
    play.each("offset_commit", "an old member epoch", asked("commit-consumer", **own))


def offset_fetch(play: Play) -> None:
    key = topic(play, "fetched-offsets", 2)
    play.quiet("offset_commit", {"group_id": "fetching", "topics": commit("fetched-offsets", key)})

    def asked(group: str, name: str | None = "fetched-offsets", topic_id: Any = key, **of: Any) -> dict[str, Any]:
        topics = None if name is None else [{"name": name, "topic_id": topic_id, "partition_indexes": [0, 1]}]
        return {"group_id": group, "topics": topics, "groups": [{"group_id": group, "topics": topics, **of}]}

    play.each("offset_fetch", "success", asked("fetching"))
    for version in range(2, 11):
        play.ask("offset_fetch", version, "success, all topics", asked("fetching", None))
    play.each("offset_fetch", "no such group", asked("nobody"))
    play.each("offset_fetch", "no such topic", asked("fetching", "nowhere", NOWHERE))
    play.last("offset_fetch", "require stable", {**asked("fetching"), "require_stable": True})
    producer_id, epoch = producer(play, "fetch-pending")
    own = {"producer_id": producer_id, "producer_epoch": epoch, "group_id": "fetching"}
    own["transactional_id"] = "fetch-pending"
    play.quiet("add_offsets_to_txn", own)
    play.quiet("txn_offset_commit", {**own, "topics": commit("fetched-offsets", None, 9)})
    for version in range(7, 11):
        stable = {**asked("fetching"), "require_stable": True}
        play.ask("offset_fetch", version, "require stable, with a pending transaction", stable)
    play.last("offset_fetch", "no such member", asked("fetching", member_id="nobody", member_epoch=1))
    beat = _consumer("fetch-consumer")
    epoch = play.quiet("consumer_group_heartbeat", beat).member_epoch
    of = {"member_id": beat["member_id"], "member_epoch": epoch}
    play.last("offset_fetch", "success, of a member", asked("fetch-consumer", **of))
    play.last("offset_fetch", "another epoch", asked("fetch-consumer", **{**of, "member_epoch": 9}))
    play.last("offset_fetch", "another member", asked("fetch-consumer", **{**of, "member_id": "nobody"}))
    two = {"groups": [*asked("fetching")["groups"], *asked("nobody")["groups"]]}
    play.last("offset_fetch", "success, two groups", two)


def _join(group: str, **fields: Any) -> dict[str, Any]:
    return {
        "group_id": group,
        "session_timeout": 60_000,
        "rebalance_timeout": 60_000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": SUBSCRIPTION}],
        **fields,
    }


def join_group(play: Play) -> None:
    for version in range(10):
        first = play.ask("join_group", version, "first", _join(f"join-{version}"))
        if version >= 4:
            again = _join(f"join-{version}", member_id=first.member_id)
            play.ask("join_group", version, "success, with the member id", again)
        if version >= 5:
            static = _join(f"join-static-{version}", group_instance_id="instance")
            play.ask("join_group", version, "success, static", static)
            play.ask("join_group", version, "success, static again", static)
            fenced = {**static, "member_id": "another"}
            play.ask("join_group", version, "the instance has another member", fenced)
    play.each("join_group", "no such member", lambda version: _join(f"join-{version}", member_id="nobody"))
    play.each("join_group", "the session timeout is too short", _join("join-short", session_timeout=1))
    play.last("join_group", "the session timeout is too long", _join("join-long", session_timeout=1 << 30))
    play.last("join_group", "an empty group", _join(""))
    play.last("join_group", "no protocols", _join("join-none", protocols=[]))
    play.last("join_group", "an empty protocol type", _join("join-none", protocol_type=""))
    play.last("join_group", "another protocol type", _join("join-1", protocol_type="connect"))
    other = [{"name": "sticky", "metadata": b""}]
    play.last("join_group", "no common protocol", _join("join-1", protocols=other))


def _member(member: str, generation: int, group: str, **fields: Any) -> dict[str, Any]:
    return {"group_id": group, "generation_id": generation, "member_id": member, **fields}


def sync_group(play: Play) -> None:
    consumer: dict[str, Any] = {"protocol_type": "consumer", "protocol_name": "range"}
    for version in range(6):
        first = play.quiet("join_group", _join(f"sync-{version}"), 0)
        own = _member(first.member_id, first.generation_id, f"sync-{version}", **consumer)
        own["assignments"] = [{"member_id": first.member_id, "assignment": b"mine"}]
        play.ask("sync_group", version, "success", own)
        play.ask("sync_group", version, "success, again", {**own, "assignments": []})
        play.ask("sync_group", version, "another generation", {**own, "generation_id": 99})
        play.ask("sync_group", version, "no such member", {**own, "member_id": "nobody"})
    play.each("sync_group", "no such group", _member("nobody", 1, "sync-nobody", **consumer))
    play.last("sync_group", "another protocol", {**own, "protocol_name": "sticky"})
    play.last("sync_group", "no protocol", {**own, "protocol_name": None})
    play.last("sync_group", "an empty group", {**own, "group_id": ""})
    static: dict[str, Any] = {"group_instance_id": "instance"}
    joined(play, "sync-static", **static)
    play.last("sync_group", "a fenced instance", _member("other", 1, "sync-static", **consumer, **static))
    play.last("sync_group", "no such instance", {**own, "group_instance_id": "nobody"})


def heartbeat(play: Play) -> None:
    member, generation = joined(play, "beating")
    play.each("heartbeat", "success", _member(member, generation, "beating"))
    play.each("heartbeat", "another generation", _member(member, 99, "beating"))
    play.each("heartbeat", "no such member", _member("nobody", generation, "beating"))
    play.each("heartbeat", "no such group", _member(member, generation, "beating-nobody"))
    play.last("heartbeat", "an empty group", _member(member, generation, ""))
    joined(play, "beating-static", group_instance_id="instance")
    play.last("heartbeat", "a fenced instance", _member("x", 1, "beating-static", group_instance_id="instance"))
    play.last("heartbeat", "no such instance", _member("x", 1, "beating-static", group_instance_id="nobody"))
    first = play.quiet("join_group", _join("beating-late"), 0)
    values = _member(first.member_id, first.generation_id, "beating-late")
    play.last("heartbeat", "before the assignment", values)


def leave_group(play: Play) -> None:
    for version in range(6):
        member, _ = joined(play, f"leaving-{version}")
        own = {"group_id": f"leaving-{version}", "member_id": member, "members": [{"member_id": member}]}
        play.ask("leave_group", version, "success", own)
        play.ask("leave_group", version, "no such member", own)
    play.each("leave_group", "no such group", {"group_id": "leaving-nobody", "member_id": "m"})
    play.last("leave_group", "an empty group", {"group_id": "", "members": [{"member_id": "m"}]})
    joined(play, "leaving-static", group_instance_id="instance")
    fenced = [{"member_id": "x", "group_instance_id": "instance"}, {"member_id": "", "group_instance_id": "nobody"}]
    for version in (3, 4, 5):
        values = {"group_id": "leaving-static", "members": fenced}
        play.ask("leave_group", version, "a fenced instance, and none", values)
    static = {"group_id": "leaving-static", "members": [{"member_id": "", "group_instance_id": "instance"}]}
    play.last("leave_group", "success, an instance", static)


def describe_groups(play: Play) -> None:
    joined(play, "described")
    joined(play, "described-static", group_instance_id="instance")
    values = {"groups": ["described", "described-static"], "include_authorized_operations": True}
    play.each("describe_groups", "success", values)
    play.each("describe_groups", "no such group", {"groups": ["described-nobody", ""]})
    play.quiet("consumer_group_heartbeat", _consumer("described-consumer"))
    play.each("describe_groups", "a consumer group", {"groups": ["described-consumer"]})


def list_groups(play: Play) -> None:
    play.each("list_groups", "success", {})
    play.each("list_groups", "success, stable", {"states_filter": ["Stable"]})
    play.last("list_groups", "success, of the consumer protocol", {"types_filter": ["consumer"]})
    play.last("list_groups", "no such state and type", {"states_filter": ["x"], "types_filter": ["y"]})


def delete_groups(play: Play) -> None:
    key = topic(play, "deleted-offsets")
    for version in range(3):
        play.quiet("offset_commit", {"group_id": f"gone-{version}", "topics": commit("deleted-offsets", key)})
        play.ask("delete_groups", version, "success", {"groups_names": [f"gone-{version}"]})
    joined(play, "gone-joined")
    play.each("delete_groups", "it has members", {"groups_names": ["gone-joined"]})
    play.each("delete_groups", "no such group", {"groups_names": ["gone-nobody"]})
    play.last("delete_groups", "an empty group", {"groups_names": [""]})


def offset_delete(play: Play) -> None:
    key = topic(play, "orders")

    def asked(group: str, name: str = "orders", partition: int = 0) -> dict[str, Any]:
        return {"group_id": group, "topics": [{"name": name, "partitions": [{"partition_index": partition}]}]}

    play.quiet("offset_commit", {"group_id": "forgetting", "topics": commit("orders", key)})
    play.last("offset_delete", "no such topic", asked("forgetting", "nowhere"))
    play.last("offset_delete", "no such partition", asked("forgetting", partition=7))
    play.last("offset_delete", "success", asked("forgetting"))
    play.last("offset_delete", "no such group", asked("forgetting-nobody"))
    play.last("offset_delete", "an empty group", asked(""))
    joined(play, "forgetting-joined")
    play.last("offset_delete", "a subscribed topic", asked("forgetting-joined"))


def _consumer(group: str, member: str = "member", epoch: int = 0, **fields: Any) -> dict[str, Any]:
    joins = {"rebalance_timeout": 60_000, "subscribed_topic_names": ["orders"], "topic_partitions": []}
    return {"group_id": group, "member_id": member, "member_epoch": epoch, **(joins if epoch <= 0 else {}), **fields}


def consumer_group_heartbeat(play: Play) -> None:
    api = "consumer_group_heartbeat"
    filled(play, "heart", 1, 2)
    named: dict[str, Any] = {"subscribed_topic_names": ["heart"]}
    for version in (0, 1):
        group = f"heart-{version}"
        epoch = play.ask(api, version, "success, joined", _consumer(group, **named)).member_epoch
        play.ask(api, version, "success, a beat", _consumer(group, epoch=epoch))
        play.ask(api, version, "another epoch", _consumer(group, epoch=9))
        play.ask(api, version, "no such member", _consumer(group, "nobody", 1))
        play.ask(api, version, "no such group", _consumer("heart-nobody", "nobody", 1))
        play.ask(api, version, "success, left", _consumer(group, epoch=-1))
    play.ask(api, 0, "success, without a member id", _consumer("heart-new", "", **named))
    play.last(api, "no member id", _consumer("heart-new", "", **named))
    play.last(api, "an empty group", _consumer("", **named))
    play.last(api, "no topics", _consumer("heart-1", subscribed_topic_names=None))
    play.last(api, "no rebalance timeout", _consumer("heart-1", **named, rebalance_timeout=-1))
    play.last(api, "no partitions", {**_consumer("heart-1", **named), "topic_partitions": None})
    play.last(api, "no such assignor", _consumer("heart-1", **named, server_assignor="nothing"))
    regex: dict[str, Any] = {"subscribed_topic_names": None, "subscribed_topic_regex": "("}
    play.last(api, "no regular expression", _consumer("heart-1", **regex))
    play.last(
        api, "success, a regular expression", _consumer("heart-regex", **{**regex, "subscribed_topic_regex": "h.*"})
    )
    play.last(api, "an epoch below -2", _consumer("heart-1", epoch=-5))
    play.last(api, "success, static", _consumer("heart-static", **named, instance_id="i"))
    play.last(api, "the instance is taken", _consumer("heart-static", "other", **named, instance_id="i"))
    play.last(api, "success, left for a while", _consumer("heart-static", epoch=-2, instance_id="i"))
    play.last(api, "no such instance", _consumer("heart-static", epoch=-2, instance_id="nobody"))
    joined(play, "heart-classic")
    play.last(api, "a classic group", _consumer("heart-classic", **named))


def consumer_group_describe(play: Play) -> None:
    play.quiet("consumer_group_heartbeat", _consumer("shown-consumer"))
    joined(play, "shown-classic")
    values = {"group_ids": ["shown-consumer"], "include_authorized_operations": True}
    play.each("consumer_group_describe", "success", values)
    groups = {"group_ids": ["shown-classic", "shown-nobody", ""]}
    play.each("consumer_group_describe", "a classic group, none, and an empty one", groups)


def _share(group: str, member: str = "AAAAAAAAAAAAAAAAAAAAAQ", epoch: int = 0, **fields: Any) -> dict[str, Any]:
    joins = {"subscribed_topic_names": ["orders"]} if epoch == 0 else {}
    return {"group_id": group, "member_id": member, "member_epoch": epoch, **joins, **fields}


def share_group_heartbeat(play: Play) -> None:
    api = "share_group_heartbeat"
    epoch = play.last(api, "success, joined", _share("shares")).member_epoch
    play.last(api, "success, a beat", _share("shares", epoch=epoch))
    play.last(api, "another epoch", _share("shares", epoch=9))
    play.last(api, "no such member", _share("shares", "AAAAAAAAAAAAAAAAAAAAAg", 1))
    play.last(api, "no such group", _share("shares-nobody", epoch=1))
    play.last(api, "an empty group", _share(""))
    play.last(api, "no member id", _share("shares", ""))
    play.last(api, "no topics", _share("shares", subscribed_topic_names=None))
    play.last(api, "an epoch below -1", _share("shares", epoch=-5))
    joined(play, "shares-classic")
    play.last(api, "a classic group", _share("shares-classic"))
    play.last(api, "success, left", _share("shares", epoch=-1))


def share_group_describe(play: Play) -> None:
    play.quiet("share_group_heartbeat", _share("shown-share"))
    joined(play, "shown-classic-2")
    values = {"group_ids": ["shown-share"], "include_authorized_operations": True}
    play.each("share_group_describe", "success", values)
    groups = {"group_ids": ["shown-classic-2", "shown-nobody", ""]}
    play.each("share_group_describe", "a classic group, none, and an empty one", groups)


def describe_share_group_offsets(play: Play) -> None:
    play.quiet("share_group_heartbeat", _share("share-offsets"))
    every = {"groups": [{"group_id": "share-offsets", "topics": None}]}
    # Without names the answer has the topics whose states are initialized, and the heartbeat does not wait for that.
    eventually(
        lambda: play.quiet("describe_share_group_offsets", every).groups[0].topics, what="the state of the topic"
    )
    one = [{"topic_name": "orders", "partitions": [0]}, {"topic_name": "nowhere", "partitions": [0]}]
    for case, group, topics in (
        ("success", "share-offsets", one),
        ("success, all topics", "share-offsets", None),
        ("no such group", "share-nobody", one),
        ("an empty group", "", one),
    ):
        play.each("describe_share_group_offsets", case, {"groups": [{"group_id": group, "topics": topics}]})


def alter_share_group_offsets(play: Play) -> None:
    api = "alter_share_group_offsets"
    filled(play, "share-altered", 3)

    def asked(group: str, name: str = "share-altered", offset: int = 1, partition: int = 0) -> dict[str, Any]:
        entry = {"partition_index": partition, "start_offset": offset}
        return {"group_id": group, "topics": [{"topic_name": name, "partitions": [entry]}]}

    play.quiet("share_group_heartbeat", _share("share-alter", subscribed_topic_names=["share-altered"]))
    play.last(api, "it has members", asked("share-alter"))
    play.quiet("share_group_heartbeat", _share("share-alter", epoch=-1))
    play.last(api, "success", asked("share-alter"))
    play.last(api, "no such topic", asked("share-alter", "nowhere"))
    play.last(api, "no such partition", asked("share-alter", partition=7))
    play.last(api, "no such group", asked("share-alter-new"))
    play.last(api, "an empty group", asked(""))


def delete_share_group_offsets(play: Play) -> None:
    api = "delete_share_group_offsets"
    values = {"group_id": "share-alter", "topics": [{"topic_name": "share-altered"}, {"topic_name": "nowhere"}]}
    play.last(api, "success, and no such topic", values)
    play.last(api, "no such group", {**values, "group_id": "share-nobody"})
    play.last(api, "an empty group", {**values, "group_id": ""})
    play.quiet("share_group_heartbeat", _share("share-alter", subscribed_topic_names=["share-altered"]))
    play.last(api, "it has members", values)


def _streams(group: str, member: str = "member", epoch: int = 0, **fields: Any) -> dict[str, Any]:
    part = {"subtopology_id": "0", "source_topics": ["orders"]}
    joins = {
        "rebalance_timeout": 60_000,
        "topology": {"epoch": 0, "subtopologies": [part]},
        "process_id": "process",
        **{name: [] for name in ("active_tasks", "standby_tasks", "warmup_tasks", "client_tags")},
    }
    return {"group_id": group, "member_id": member, "member_epoch": epoch, **(joins if epoch == 0 else {}), **fields}


def streams_group_heartbeat(play: Play) -> None:
    api = "streams_group_heartbeat"
    play.last(api, "success, joined", _streams("streams"))
    play.last(api, "success, a beat", _streams("streams", epoch=1))
    play.last(api, "another epoch", _streams("streams", epoch=9))
    play.last(api, "no such member", _streams("streams", "nobody", 1))
    play.last(api, "no such group", _streams("streams-nobody", epoch=1))
    play.last(api, "an empty group", _streams(""))
    play.last(api, "no member id", _streams("streams", ""))
    play.last(api, "no topology", _streams("streams", topology=None))
    play.last(api, "no rebalance timeout", _streams("streams", rebalance_timeout=-1))
    play.last(api, "an epoch below -2", _streams("streams", epoch=-5))
    bad = {"epoch": 0, "subtopologies": [{"subtopology_id": "0"}]}
    play.last(api, "a subtopology without sources", _streams("streams-bad", topology=bad))
    missing = {"epoch": 0, "subtopologies": [{"subtopology_id": "0", "source_topics": ["nowhere"]}]}
    play.last(api, "a missing source topic", _streams("streams-missing", topology=missing))
    joined(play, "streams-classic")
    play.last(api, "a classic group", _streams("streams-classic"))
    play.last(api, "success, left", _streams("streams", epoch=-1))


def streams_group_describe(play: Play) -> None:
    play.quiet("streams_group_heartbeat", _streams("shown-streams"))
    joined(play, "shown-classic-3")
    values = {"group_ids": ["shown-streams"], "include_authorized_operations": True}
    play.each("streams_group_describe", "success", values)
    groups = {"group_ids": ["shown-classic-3", "shown-nobody", ""]}
    play.each("streams_group_describe", "a classic group, none, and an empty one", groups)
