"""What a broker without an authorizer, delegation tokens and newer protocols of groups refuses."""

from __future__ import annotations

from typing import Any

from tests.support.answers.play import Play
from tests.support.answers.scripts.made import ANYTHING
from tests.support.answers.scripts.refused import refuse_version
from tests.support.answers.scripts.security import ALLOW

_WITHOUT = "on a broker without an authorizer"
_TOKENLESS = "on a broker without delegation tokens"


def init_producer_id(play: Play) -> None:
    refuse_version(play, "init_producer_id", 6)


def create_acls(play: Play) -> None:
    play.each("create_acls", _WITHOUT, {"creations": []})
    play.each("create_acls", f"{_WITHOUT}, a rule", {"creations": [ALLOW]})


def describe_acls(play: Play) -> None:
    play.each("describe_acls", _WITHOUT, ANYTHING)


def delete_acls(play: Play) -> None:
    play.each("delete_acls", _WITHOUT, {"filters": []})
    play.each("delete_acls", f"{_WITHOUT}, a filter", {"filters": [ANYTHING]})


def create_delegation_token(play: Play) -> None:
    _tokenless(play, "create_delegation_token", {"owner_principal_type": "", "owner_principal_name": ""})


def renew_delegation_token(play: Play) -> None:
    _tokenless(play, "renew_delegation_token", {"hmac": b"x"})


def expire_delegation_token(play: Play) -> None:
    _tokenless(play, "expire_delegation_token", {"hmac": b"x"})


def describe_delegation_token(play: Play) -> None:
    _tokenless(play, "describe_delegation_token", {"owners": None})


def _tokenless(play: Play, api: str, values: dict[str, Any]) -> None:
    play.each(api, _TOKENLESS, values)
    play.each(api, f"{_TOKENLESS}, after a login", values, on=play.log_in("owner"))


_UNSERVED = "without the group protocol"
_MEMBER = {"group_id": "group", "member_id": "member"}
_GROUPS = {"group_ids": ["group"]}


def consumer_group_heartbeat(play: Play) -> None:
    play.each("consumer_group_heartbeat", _UNSERVED, _MEMBER)


def consumer_group_describe(play: Play) -> None:
    play.each("consumer_group_describe", _UNSERVED, _GROUPS)


def streams_group_heartbeat(play: Play) -> None:
    play.each("streams_group_heartbeat", _UNSERVED, {**_MEMBER, "topology": None})


def streams_group_describe(play: Play) -> None:
    play.each("streams_group_describe", _UNSERVED, _GROUPS)


def share_group_heartbeat(play: Play) -> None:
    play.each("share_group_heartbeat", _UNSERVED, _MEMBER)


def share_group_describe(play: Play) -> None:
    play.each("share_group_describe", _UNSERVED, _GROUPS)


def share_fetch(play: Play) -> None:
    play.each("share_fetch", _UNSERVED, _MEMBER)


def share_acknowledge(play: Play) -> None:
    play.each("share_acknowledge", _UNSERVED, _MEMBER)


def describe_share_group_offsets(play: Play) -> None:
    play.each("describe_share_group_offsets", _UNSERVED, {"groups": [{"group_id": "group", "topics": None}]})


def alter_share_group_offsets(play: Play) -> None:
    play.each("alter_share_group_offsets", _UNSERVED, {"group_id": "group"})


def delete_share_group_offsets(play: Play) -> None:
    play.each("delete_share_group_offsets", _UNSERVED, {"group_id": "group"})
