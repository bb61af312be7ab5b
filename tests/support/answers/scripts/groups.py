"""Offsets, and the groups of the classic and the consumer protocol, of streams and of shares."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from barnabas.protocol.messages.security.resources import Operation, ResourceType
from tests.support.answers.play import Play
from tests.support.answers.scripts.made import NOWHERE, SUBSCRIPTION, commit, filled, joined, producer, rights, topic
from tests.support.eventually import eventually

_TOO_LONG = "m" * 4097
_SUPERSEDED = "the member joins once more while its join waits"
_ANY_GROUP = (ResourceType.GROUP, "*", Operation.ALL)


def find_coordinator(play: Play) -> None:
    def asked(key: str, kind: int = 0) -> dict[str, Any]:
        return {"key": key, "key_type": kind, "coordinator_keys": [key, f"{key}-2"]}

    play.each("find_coordinator", "success, of a group", asked("found"))
    play.each("find_coordinator", "success, of a transactional id", asked("found-tx", 1))
    play.each("find_coordinator", "of a share partition", asked(f"g:{'A' * 21}Q:0", 2))
    play.each("find_coordinator", "not a share partition", asked("g", 2))
    play.each("find_coordinator", "no such type", asked("x", 9))
    play.each("find_coordinator", "an empty group", asked(""))
    without = asked(f"g:{'A' * 21}Q:0", 2)
    play.each("find_coordinator", "of a share partition, without rights", without, since=6, on=play.log_in("nobody"))


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
    play.each("offset_commit", "no such partition", asked("committing", partition=7))
    play.each("offset_commit", "metadata too long", asked("committing", metadata=_TOO_LONG))
    play.each("offset_commit", "an empty group", asked(""))
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
    play.each("offset_commit", "not of a member", asked("commit-joined"))
    own = {"member_id": "nobody", "group_instance_id": "i", "generation_id_or_member_epoch": 1}
    play.each("offset_commit", "no such instance", asked("commit-joined", **own))
    beat = consumer_beat("commit-consumer")
    joined_member = play.quiet("consumer_group_heartbeat", beat)
    own = {"member_id": beat["member_id"], "generation_id_or_member_epoch": joined_member.member_epoch}
    play.each("offset_commit", "of a consumer group's member", asked("commit-consumer", **own))
    own["generation_id_or_member_epoch"] = 0
    play.each("offset_commit", "an old member epoch", asked("commit-consumer", **own))
    with rights(play, _ANY_GROUP):
        play.each("offset_commit", "without rights to the topic", asked("committing"), on=play.log_in("nobody"))


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
    play.each("offset_fetch", "require stable", {**asked("fetching"), "require_stable": True})
    producer_id, epoch = producer(play, "fetch-pending")
    own = {"producer_id": producer_id, "producer_epoch": epoch, "group_id": "fetching"}
    own["transactional_id"] = "fetch-pending"
    play.quiet("add_offsets_to_txn", own)
    play.quiet("txn_offset_commit", {**own, "topics": commit("fetched-offsets", None, 9)})
    for version in range(7, 11):
        stable = {**asked("fetching"), "require_stable": True}
        play.ask("offset_fetch", version, "require stable, with a pending transaction", stable)
    play.each("offset_fetch", "no such member", asked("fetching", member_id="nobody", member_epoch=1))
    beat = consumer_beat("fetch-consumer")
    epoch = play.quiet("consumer_group_heartbeat", beat).member_epoch
    of = {"member_id": beat["member_id"], "member_epoch": epoch}
    play.each("offset_fetch", "success, of a member", asked("fetch-consumer", **of))
    play.each("offset_fetch", "another epoch", asked("fetch-consumer", **{**of, "member_epoch": 9}))
    play.each("offset_fetch", "another member", asked("fetch-consumer", **{**of, "member_id": "nobody"}))
    two = {"groups": [*asked("fetching")["groups"], *asked("nobody")["groups"]]}
    play.each("offset_fetch", "success, two groups", two)
    nobody = play.log_in("nobody")
    play.each("offset_fetch", "without rights to the group", asked("fetching"), on=nobody)
    every = {"groups": asked("nobody", None)["groups"] * 11}
    play.each("offset_fetch", "all topics of a group eleven times", every, since=8)
    with rights(play, _ANY_GROUP):
        play.each("offset_fetch", "without rights to the topic", asked("fetching"), on=nobody)


def join(group: str, **fields: Any) -> dict[str, Any]:
    return {
        "group_id": group,
        "session_timeout": 60_000,
        "rebalance_timeout": 60_000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": SUBSCRIPTION}],
        **fields,
    }


@contextmanager
def rebalancing(play: Play, group: str) -> Iterator[tuple[str, int]]:
    """Yield the member and the generation of a group in which another member's join waits; the group ends after it."""
    member, generation = joined(play, group)
    other = play.ask_beside("join_group", 0, f"success, of a second member of {group}", join(group))
    yield member, generation
    leave(play, group, member)
    leave(play, group, other().member_id)
    play.quiet("delete_groups", {"groups_names": [group]})


def leave(play: Play, group: str, member: str) -> None:
    play.quiet("leave_group", {"group_id": group, "members": [{"member_id": member}]})


def join_group(play: Play) -> None:
    for version in range(10):
        first = play.ask("join_group", version, "first", join(f"join-{version}"))
        if version >= 4:
            again = join(f"join-{version}", member_id=first.member_id)
            play.ask("join_group", version, "success, with the member id", again)
        if version >= 5:
            static = join(f"join-static-{version}", group_instance_id="instance")
            play.ask("join_group", version, "success, static", static)
            play.ask("join_group", version, "success, static again", static)
            fenced = {**static, "member_id": "another"}
            play.ask("join_group", version, "the instance has another member", fenced)
    play.each("join_group", "no such member", lambda version: join(f"join-{version}", member_id="nobody"))
    play.each("join_group", "the session timeout is too short", join("join-short", session_timeout=1))
    play.each("join_group", "the session timeout is too long", join("join-long", session_timeout=1 << 30))
    play.each("join_group", "an empty group", join(""))
    play.each("join_group", "no protocols", join("join-none", protocols=[]))
    play.each("join_group", "an empty protocol type", join("join-none", protocol_type=""))
    play.each("join_group", "another protocol type", join("join-1", protocol_type="connect"))
    other = [{"name": "sticky", "metadata": b""}]
    play.each("join_group", "no common protocol", join("join-1", protocols=other))
    with rebalancing(play, "join-again") as (member, _):
        again = join("join-again", member_id=member)
        generation = play.quiet("join_group", again).generation_id  # ends the rebalance
        consumer = {"protocol_type": "consumer", "protocol_name": "range"}
        play.quiet("sync_group", _member(member, generation, "join-again", **consumer))
        waiting = play.ask_beside("join_group", 0, _SUPERSEDED, again)  # for the other member
        for version in range(1, 10):
            later = play.ask_beside("join_group", version, _SUPERSEDED, again)
            waiting()
            waiting = later
        last = play.ask_beside("join_group", 9, "the member leaves while its join waits", again)
        waiting()
    last()


def _member(member: str, generation: int, group: str, **fields: Any) -> dict[str, Any]:
    return {"group_id": group, "generation_id": generation, "member_id": member, **fields}


def sync_group(play: Play) -> None:
    consumer: dict[str, Any] = {"protocol_type": "consumer", "protocol_name": "range"}
    for version in range(6):
        first = play.quiet("join_group", join(f"sync-{version}"), 0)
        own = _member(first.member_id, first.generation_id, f"sync-{version}", **consumer)
        own["assignments"] = [{"member_id": first.member_id, "assignment": b"mine"}]
        play.ask("sync_group", version, "success", own)
        play.ask("sync_group", version, "success, again", {**own, "assignments": []})
        play.ask("sync_group", version, "another generation", {**own, "generation_id": 99})
        play.ask("sync_group", version, "no such member", {**own, "member_id": "nobody"})
    play.each("sync_group", "no such group", _member("nobody", 1, "sync-nobody", **consumer))
    play.each("sync_group", "another protocol", {**own, "protocol_name": "sticky"})
    play.each("sync_group", "no protocol", {**own, "protocol_name": None})
    play.each("sync_group", "an empty group", {**own, "group_id": ""})
    static: dict[str, Any] = {"group_instance_id": "instance"}
    joined(play, "sync-static", **static)
    play.each("sync_group", "a fenced instance", _member("other", 1, "sync-static", **consumer, **static))
    play.each("sync_group", "no such instance", {**own, "group_instance_id": "nobody"})
    with rebalancing(play, "sync-late") as (member, generation):
        play.each("sync_group", "in a rebalance", _member(member, generation, "sync-late", **consumer))


def heartbeat(play: Play) -> None:
    member, generation = joined(play, "beating")
    play.each("heartbeat", "success", _member(member, generation, "beating"))
    play.each("heartbeat", "another generation", _member(member, 99, "beating"))
    play.each("heartbeat", "no such member", _member("nobody", generation, "beating"))
    play.each("heartbeat", "no such group", _member(member, generation, "beating-nobody"))
    play.each("heartbeat", "an empty group", _member(member, generation, ""))
    joined(play, "beating-static", group_instance_id="instance")
    play.each("heartbeat", "a fenced instance", _member("x", 1, "beating-static", group_instance_id="instance"))
    play.each("heartbeat", "no such instance", _member("x", 1, "beating-static", group_instance_id="nobody"))
    first = play.quiet("join_group", join("beating-late"), 0)
    values = _member(first.member_id, first.generation_id, "beating-late")
    play.each("heartbeat", "before the assignment", values)
    with rebalancing(play, "beating-again") as (member, generation):
        play.each("heartbeat", "in a rebalance", _member(member, generation, "beating-again"))


def leave_group(play: Play) -> None:
    for version in range(6):
        member, _ = joined(play, f"leaving-{version}")
        own = {"group_id": f"leaving-{version}", "member_id": member, "members": [{"member_id": member}]}
        play.ask("leave_group", version, "success", own)
        play.ask("leave_group", version, "no such member", own)
    play.each("leave_group", "no such group", {"group_id": "leaving-nobody", "member_id": "m"})
    play.each("leave_group", "an empty group", {"group_id": "", "members": [{"member_id": "m"}]})
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
    play.quiet("consumer_group_heartbeat", consumer_beat("described-consumer"))
    play.each("describe_groups", "a consumer group", {"groups": ["described-consumer"]})
    play.each("describe_groups", "a group eleven times", {"groups": ["described-nobody"] * 11})


def list_groups(play: Play) -> None:
    play.each("list_groups", "success", {})
    play.each("list_groups", "success, stable", {"states_filter": ["Stable"]})
    play.each("list_groups", "success, of the consumer protocol", {"types_filter": ["consumer"]})
    play.each("list_groups", "no such state and type", {"states_filter": ["x"], "types_filter": ["y"]})


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
    play.each("offset_delete", "no such topic", asked("forgetting", "nowhere"))
    play.each("offset_delete", "no such partition", asked("forgetting", partition=7))
    play.each("offset_delete", "success", asked("forgetting"))
    play.each("offset_delete", "no such group", asked("forgetting-nobody"))
    play.each("offset_delete", "an empty group", asked(""))
    joined(play, "forgetting-joined")
    play.each("offset_delete", "a subscribed topic", asked("forgetting-joined"))
    with rights(play, _ANY_GROUP):
        play.each("offset_delete", "without rights to the topic", asked("forgetting-joined"), on=play.log_in("nobody"))


def consumer_beat(group: str, member: str = "member", epoch: int = 0, **fields: Any) -> dict[str, Any]:
    joins = {"rebalance_timeout": 60_000, "subscribed_topic_names": ["orders"], "topic_partitions": []}
    return {"group_id": group, "member_id": member, "member_epoch": epoch, **(joins if epoch <= 0 else {}), **fields}


def consumer_group_heartbeat(play: Play) -> None:
    api = "consumer_group_heartbeat"
    filled(play, "heart", 1, 2)
    named: dict[str, Any] = {"subscribed_topic_names": ["heart"]}
    for version in (0, 1):
        group = f"heart-{version}"
        epoch = play.ask(api, version, "success, joined", consumer_beat(group, **named)).member_epoch
        play.ask(api, version, "success, a beat", consumer_beat(group, epoch=epoch))
        play.ask(api, version, "another epoch", consumer_beat(group, epoch=9))
        play.ask(api, version, "no such member", consumer_beat(group, "nobody", 1))
        play.ask(api, version, "no such group", consumer_beat("heart-nobody", "nobody", 1))
        play.ask(api, version, "success, left", consumer_beat(group, epoch=-1))
    play.ask(api, 0, "success, without a member id", consumer_beat("heart-new", "", **named))
    play.each(api, "no member id", consumer_beat("heart-new", "", **named))
    play.each(api, "an empty group", consumer_beat("", **named))
    play.each(api, "no topics", consumer_beat("heart-1", subscribed_topic_names=None))
    play.each(api, "no rebalance timeout", consumer_beat("heart-1", **named, rebalance_timeout=-1))
    play.each(api, "no partitions", {**consumer_beat("heart-1", **named), "topic_partitions": None})
    play.each(api, "no such assignor", consumer_beat("heart-1", **named, server_assignor="nothing"))
    regex: dict[str, Any] = {"subscribed_topic_names": None, "subscribed_topic_regex": "("}
    play.each(api, "no regular expression", consumer_beat("heart-1", **regex))
    play.each(
        api, "success, a regular expression", consumer_beat("heart-regex", **{**regex, "subscribed_topic_regex": "h.*"})
    )
    play.each(api, "an epoch below -2", consumer_beat("heart-1", epoch=-5))
    play.last(api, "success, static", consumer_beat("heart-static", **named, instance_id="i"))
    play.each(api, "the instance is taken", consumer_beat("heart-static", "other", **named, instance_id="i"))
    play.each(api, "success, left for a while", consumer_beat("heart-static", epoch=-2, instance_id="i"))
    play.each(api, "no such instance", consumer_beat("heart-static", epoch=-2, instance_id="nobody"))
    joined(play, "heart-classic")
    play.each(api, "a classic group", consumer_beat("heart-classic", **named))


def consumer_group_describe(play: Play) -> None:
    play.quiet("consumer_group_heartbeat", consumer_beat("shown-consumer"))
    joined(play, "shown-classic")
    values = {"group_ids": ["shown-consumer"], "include_authorized_operations": True}
    play.each("consumer_group_describe", "success", values)
    groups = {"group_ids": ["shown-classic", "shown-nobody", ""]}
    play.each("consumer_group_describe", "a classic group, none, and an empty one", groups)
    with rights(play, _ANY_GROUP):
        play.each("consumer_group_describe", "without rights to the topics", values, on=play.log_in("nobody"))
    play.each("consumer_group_describe", "a group eleven times", {"group_ids": ["shown-nobody"] * 11})


def share_beat(group: str, member: str = "AAAAAAAAAAAAAAAAAAAAAQ", epoch: int = 0, **fields: Any) -> dict[str, Any]:
    joins = {"subscribed_topic_names": ["orders"]} if epoch == 0 else {}
    return {"group_id": group, "member_id": member, "member_epoch": epoch, **joins, **fields}


def assigned(play: Play, group: str, **fields: Any) -> int:
    """Join, wait for the assignment, and return the member's epoch: a topic is assigned once its state is initialized.

    The heartbeat does not wait for that, so what is answered before it depends on the machine.
    """

    def epoch() -> int | None:
        answer = play.quiet("share_group_heartbeat", share_beat(group, **fields))
        return answer.member_epoch if answer.assignment and answer.assignment.topic_partitions else None

    return eventually(epoch, what="the assignment")


def share_group_heartbeat(play: Play) -> None:
    api = "share_group_heartbeat"
    play.each(api, "success, joined", share_beat("shares"))
    epoch = assigned(play, "shares")
    play.each(api, "success, a beat", share_beat("shares", epoch=epoch))
    play.each(api, "another epoch", share_beat("shares", epoch=9))
    play.each(api, "no such member", share_beat("shares", "AAAAAAAAAAAAAAAAAAAAAg", 1))
    play.each(api, "no such group", share_beat("shares-nobody", epoch=1))
    play.each(api, "an empty group", share_beat(""))
    play.each(api, "no member id", share_beat("shares", ""))
    play.each(api, "no topics", share_beat("shares", subscribed_topic_names=None))
    play.each(api, "an epoch below -1", share_beat("shares", epoch=-5))
    joined(play, "shares-classic")
    play.each(api, "a classic group", share_beat("shares-classic"))
    play.each(api, "success, left", share_beat("shares", epoch=-1))


def share_group_describe(play: Play) -> None:
    assigned(play, "shown-share")
    joined(play, "shown-classic-2")
    values = {"group_ids": ["shown-share"], "include_authorized_operations": True}
    play.each("share_group_describe", "success", values)
    groups = {"group_ids": ["shown-classic-2", "shown-nobody", ""]}
    play.each("share_group_describe", "a classic group, none, and an empty one", groups)
    with rights(play, _ANY_GROUP):
        play.each("share_group_describe", "without rights to the topics", values, on=play.log_in("nobody"))
    play.each("share_group_describe", "a group eleven times", {"group_ids": ["shown-nobody"] * 11})


def describe_share_group_offsets(play: Play) -> None:
    play.quiet("share_group_heartbeat", share_beat("share-offsets"))
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

    play.quiet("share_group_heartbeat", share_beat("share-alter", subscribed_topic_names=["share-altered"]))
    play.each(api, "it has members", asked("share-alter"))
    play.quiet("share_group_heartbeat", share_beat("share-alter", epoch=-1))
    play.each(api, "success", asked("share-alter"))
    play.each(api, "no such topic", asked("share-alter", "nowhere"))
    play.each(api, "no such partition", asked("share-alter", partition=7))
    play.each(api, "no such group", asked("share-alter-new"))
    play.each(api, "an empty group", asked(""))


def delete_share_group_offsets(play: Play) -> None:
    api = "delete_share_group_offsets"
    values = {"group_id": "share-alter", "topics": [{"topic_name": "share-altered"}, {"topic_name": "nowhere"}]}
    play.each(api, "success, and no such topic", values)
    play.each(api, "no such group", {**values, "group_id": "share-nobody"})
    play.each(api, "an empty group", {**values, "group_id": ""})
    play.quiet("share_group_heartbeat", share_beat("share-alter", subscribed_topic_names=["share-altered"]))
    play.each(api, "it has members", values)


def streams_beat(group: str, member: str = "member", epoch: int = 0, **fields: Any) -> dict[str, Any]:
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
    play.each(api, "success, joined", streams_beat("streams"))
    play.each(api, "success, a beat", streams_beat("streams", epoch=1))
    play.each(api, "another epoch", streams_beat("streams", epoch=9))
    play.each(api, "no such member", streams_beat("streams", "nobody", 1))
    play.each(api, "no such group", streams_beat("streams-nobody", epoch=1))
    play.each(api, "an empty group", streams_beat(""))
    play.each(api, "no member id", streams_beat("streams", ""))
    play.each(api, "no topology", streams_beat("streams", topology=None))
    play.each(api, "no rebalance timeout", streams_beat("streams", rebalance_timeout=-1))
    play.each(api, "an epoch below -2", streams_beat("streams", epoch=-5))
    bad = {"epoch": 0, "subtopologies": [{"subtopology_id": "0"}]}
    play.each(api, "a subtopology without sources", streams_beat("streams-bad", topology=bad))
    missing = {"epoch": 0, "subtopologies": [{"subtopology_id": "0", "source_topics": ["nowhere"]}]}
    play.each(api, "a missing source topic", streams_beat("streams-missing", topology=missing))
    joined(play, "streams-classic")
    play.each(api, "a classic group", streams_beat("streams-classic"))
    negative = {"epoch": -1, "subtopologies": [{"subtopology_id": "0", "source_topics": ["orders"]}]}
    play.each(api, "a negative epoch of the topology", streams_beat("streams-bad", topology=negative))
    play.each(api, "success, left", streams_beat("streams", epoch=-1))


def streams_group_describe(play: Play) -> None:
    play.quiet("streams_group_heartbeat", streams_beat("shown-streams"))
    joined(play, "shown-classic-3")
    values = {"group_ids": ["shown-streams"], "include_authorized_operations": True}
    play.each("streams_group_describe", "success", values)
    groups = {"group_ids": ["shown-classic-3", "shown-nobody", ""]}
    play.each("streams_group_describe", "a classic group, none, and an empty one", groups)
    with rights(play, _ANY_GROUP):
        play.each("streams_group_describe", "without rights to the topics", values, on=play.log_in("nobody"))
    play.each("streams_group_describe", "a group eleven times", {"group_ids": ["shown-nobody"] * 11})
