"""Answers to requests for delegation tokens in the newest version of each API."""

from __future__ import annotations

from typing import NamedTuple

from tests.support.kafka.fields import Fields


class DescribedToken(NamedTuple):
    """The fields of a token that do not depend on the clock."""

    owner: str
    requester: str
    hmac: bytes
    renewers: tuple[str, ...]


def described_tokens(frame: bytes) -> list[DescribedToken]:
    """Return the tokens in an answer to DescribeDelegationToken 3."""
    fields = Fields(frame, is_flexible=True)
    fields.int16()
    return _tokens(fields)


def token_outcome(api: str, frame: bytes) -> list[str]:
    """Return the error code of an answer, and the tokens that it describes."""
    fields = Fields(frame, is_flexible=True)
    found = [f"error_code={fields.int16()}"]
    if api == "describe_delegation_token":
        found += [
            f"tokens[{token.owner}].{name}={value}"
            for token in _tokens(fields)
            for name, value in (("requester", token.requester), ("renewers", ",".join(token.renewers)))
        ]
    return sorted(found)


def _tokens(fields: Fields) -> list[DescribedToken]:
    return [_token(fields) for _ in range(fields.count())]


def _token(fields: Fields) -> DescribedToken:
    owner, requester = _principal(fields), _principal(fields)
    for _ in ("issued", "expires", "latest end"):
        fields.int64()
    fields.text()  # the token's id
    hmac = fields.data()
    renewers = []
    for _ in range(fields.count()):
        renewers.append(_principal(fields))
        fields.end_of_structure()
    fields.end_of_structure()
    return DescribedToken(owner, requester, hmac, tuple(sorted(renewers)))


def _principal(fields: Fields) -> str:
    return f"{fields.text()}:{fields.text()}"
