"""What a broker refuses after a crash, and one whose groups have one member and that keeps one share session."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tests.support.answers.play import Play
from tests.support.answers.scripts.data import fetched, listed
from tests.support.answers.scripts.groups import consumer_beat, join, share_beat, streams_beat
from tests.support.answers.scripts.made import filled, topic
from tests.support.answers.scripts.share import SIZES, share_session

_OLD = "an old leader epoch"
_FULL = "the group is full"


def fetch(play: Play) -> None:
    key = filled(play, "crashed", 2)
    play.crash()
    play.each("fetch", _OLD, fetched("crashed", key, of={"current_leader_epoch": 0}), since=9)


def list_offsets(play: Play) -> None:
    play.each("list_offsets", _OLD, listed("crashed", -1, current_leader_epoch=0), since=4)


def offset_for_leader_epoch(play: Play) -> None:
    entry = {"partition": 0, "current_leader_epoch": 0, "leader_epoch": 0}
    play.each("offset_for_leader_epoch", _OLD, {"topics": [{"topic": "crashed", "partitions": [entry]}]})


def join_group(play: Play) -> None:
    play.quiet("join_group", join("full"), 0)
    play.each("join_group", _FULL, join("full"))


def consumer_group_heartbeat(play: Play) -> None:
    play.quiet("consumer_group_heartbeat", consumer_beat("full-consumer"))
    play.each("consumer_group_heartbeat", _FULL, consumer_beat("full-consumer", "other"))


def share_group_heartbeat(play: Play) -> None:
    play.quiet("share_group_heartbeat", share_beat("full-share"))
    play.each("share_group_heartbeat", _FULL, share_beat("full-share", "AAAAAAAAAAAAAAAAAAAAAg"))


def streams_group_heartbeat(play: Play) -> None:
    topic(play, "orders")
    play.quiet("streams_group_heartbeat", streams_beat("full-streams"))
    play.each("streams_group_heartbeat", _FULL, streams_beat("full-streams", "other"))


def share_fetch(play: Play) -> None:
    opened: dict[str, Any] = share_session("share-limit", UUID(int=1), 0, **SIZES)
    play.quiet("share_fetch", opened, on=play.connect())
    play.each("share_fetch", "as many sessions as there may be", {**opened, "member_id": "BAAAAAAAAAAAAAAAAAAAAQ"})
