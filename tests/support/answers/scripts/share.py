"""Share sessions, and the state of share partitions."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from barnabas.protocol.messages.security.resources import Operation, ResourceType
from tests.support.answers.play import Play
from tests.support.answers.requests import versions
from tests.support.answers.scripts.groups import assigned
from tests.support.answers.scripts.made import NOWHERE, filled, rights, topic

_MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"
_ANY_GROUP = (ResourceType.GROUP, "*", Operation.ALL)


def _joined(play: Play, group: str, name: str) -> UUID:
    key = filled(play, name, 3)
    earliest = [{"name": "share.auto.offset.reset", "value": "earliest"}]
    configs = {"resources": [{"resource_type": 32, "resource_name": group, "configs": earliest}]}
    play.quiet("incremental_alter_configs", configs)
    assigned(play, group, subscribed_topic_names=[name])
    play.quiet("find_coordinator", {"key_type": 0, "coordinator_keys": [group]})
    return key


def share_session(group: str, key: UUID | None, epoch: int, partition: int = 0, **fields: Any) -> dict[str, Any]:
    batches = fields.pop("batches", [])
    entry = {"partition_index": partition, "acknowledgement_batches": batches}
    topics = [] if key is None else [{"topic_id": key, "partitions": [entry]}]
    return {"group_id": group, "member_id": _MEMBER, "share_session_epoch": epoch, "topics": topics, **fields}


def _batch(first: int, last: int, kind: int) -> dict[str, Any]:
    return {"first_offset": first, "last_offset": last, "acknowledge_types": [kind]}


SIZES = {"min_bytes": 1, "max_bytes": 1 << 20, "max_records": 10, "batch_size": 10}


def share_fetch(play: Play) -> None:
    api = "share_fetch"
    for version in versions(api):
        group = f"share-fetching-{version}"
        key = _joined(play, group, group)
        on = play.connect()
        waited = {**SIZES, "max_wait": 500}
        play.ask(api, version, "success, opened", share_session(group, key, 0, **waited), on=on)
        done = [_batch(0, 0, 1)]
        play.ask(api, version, "success, accepted", share_session(group, key, 1, **SIZES, batches=done), on=on)
        wrong = [_batch(50, 60, 1)]
        play.ask(
            api, version, "an acknowledgement of others", share_session(group, key, 2, **SIZES, batches=wrong), on=on
        )
        play.ask(api, version, "another epoch", share_session(group, None, 9, **SIZES), on=on)
        play.ask(api, version, "no such topic", share_session(group, NOWHERE, 3, **SIZES), on=on)
        play.ask(api, version, "no such partition", share_session(group, key, 4, 7, **SIZES), on=on)
        play.ask(api, version, "success, closed", share_session(group, None, -1, **SIZES), on=on)
    play.each(api, "no such session", share_session("share-none", None, 5, **SIZES))
    play.each(api, "an empty group", share_session("", None, 0, **SIZES))
    with rights(play, _ANY_GROUP):
        first = share_session("share-nobody", key, 0, **SIZES)
        play.each(api, "without rights to the topic", first, on=play.log_in("nobody"))
    play.each(api, "no member", {**share_session("share-none", None, 0, **SIZES), "member_id": None})


def share_acknowledge(play: Play) -> None:
    api = "share_acknowledge"
    for version in versions(api):
        group = f"share-accepting-{version}"
        key = _joined(play, group, group)
        on = play.connect()
        play.quiet("share_fetch", share_session(group, key, 0, **SIZES, max_wait=500), version, on=on)
        play.ask(api, version, "success, accepted", share_session(group, key, 1, batches=[_batch(0, 0, 1)]), on=on)
        play.ask(api, version, "success, released", share_session(group, key, 2, batches=[_batch(1, 1, 2)]), on=on)
        play.ask(api, version, "accepted twice", share_session(group, key, 3, batches=[_batch(0, 0, 1)]), on=on)
        play.ask(api, version, "no such type", share_session(group, key, 4, batches=[_batch(2, 2, 9)]), on=on)
        play.ask(api, version, "another epoch", share_session(group, None, 9), on=on)
        again = [_batch(1, 1, 1)]
        play.ask(api, version, "accepted after the release", share_session(group, key, 5, batches=again), on=on)
        accepts = [_batch(2, 2, 1)]
        play.ask(api, version, "no such partition", share_session(group, key, 6, 7, batches=accepts), on=on)
        play.ask(api, version, "no such topic", share_session(group, NOWHERE, 7, batches=accepts), on=on)
        play.ask(api, version, "success, closed", share_session(group, None, -1), on=on)
    play.each(api, "no such session", share_session("share-none", None, 5))
    play.each(api, "the first epoch", share_session("share-none", None, 0))
    with rights(play, _ANY_GROUP):
        nobody = play.log_in("nobody")
        play.quiet("share_fetch", share_session("share-hidden", key, 0, **SIZES), on=nobody)
        for epoch, version in enumerate(versions(api), 1):
            refused = share_session("share-hidden", key, epoch, batches=[_batch(0, 0, 1)])
            play.ask(api, version, "without rights to the topic", refused, on=nobody)


def _state(group: str, key: UUID, partition: int = 0, **fields: Any) -> dict[str, Any]:
    return {"group_id": group, "topics": [{"topic_id": key, "partitions": [{"partition": partition, **fields}]}]}


def _requests(play: Play, api: str, **fields: Any) -> None:
    key = topic(play, api.replace("_", "-"))
    play.quiet("find_coordinator", {"key_type": 0, "coordinator_keys": ["state"]})
    if api != "initialize_share_group_state":
        play.quiet("initialize_share_group_state", _state("state", key, state_epoch=1, start_offset=0))
    play.each(api, "success", _state("state", key, **fields))
    play.each(api, "no such state", _state("state-nobody", key, **fields))
    play.each(api, "no such topic", _state("state", NOWHERE, **fields))
    play.each(api, "no such partition", _state("state", key, 7, **fields))
    play.each(api, "a negative partition", _state("state", key, -1, **fields))
    play.each(api, "an empty group", _state("", key, **fields))
    for name in sorted({"state_epoch", "leader_epoch"} & set(fields)):
        play.each(api, f"an old {name.replace('_', ' ')}", _state("state", key, **{**fields, name: -1}))


def initialize_share_group_state(play: Play) -> None:
    _requests(play, "initialize_share_group_state", state_epoch=1, start_offset=0)


def read_share_group_state(play: Play) -> None:
    _requests(play, "read_share_group_state", leader_epoch=0)


def write_share_group_state(play: Play) -> None:
    batches = [{"first_offset": 0, "last_offset": 1, "delivery_state": 2, "delivery_count": 1}]
    _requests(play, "write_share_group_state", state_epoch=1, leader_epoch=0, start_offset=0, state_batches=batches)


def delete_share_group_state(play: Play) -> None:
    _requests(play, "delete_share_group_state")


def read_share_group_state_summary(play: Play) -> None:
    _requests(play, "read_share_group_state_summary", leader_epoch=0)
