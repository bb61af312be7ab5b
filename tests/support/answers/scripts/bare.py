"""What a broker without an authorizer and without delegation tokens refuses."""

from __future__ import annotations

from tests.support.answers.play import Play

_WITHOUT = "on a broker without an authorizer"
_TOKENLESS = "on a broker without delegation tokens"


def create_acls(play: Play) -> None:
    play.last("create_acls", _WITHOUT, {"creations": []})


def describe_acls(play: Play) -> None:
    filters = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
    play.last("describe_acls", _WITHOUT, filters)


def delete_acls(play: Play) -> None:
    play.last("delete_acls", _WITHOUT, {"filters": []})


def create_delegation_token(play: Play) -> None:
    play.last("create_delegation_token", _TOKENLESS, {"owner_principal_type": "", "owner_principal_name": ""})


def renew_delegation_token(play: Play) -> None:
    play.last("renew_delegation_token", _TOKENLESS, {"hmac": b"x"})


def expire_delegation_token(play: Play) -> None:
    play.last("expire_delegation_token", _TOKENLESS, {"hmac": b"x"})


def describe_delegation_token(play: Play) -> None:
    play.last("describe_delegation_token", _TOKENLESS, {"owners": None})
