"""KafkaPrincipal: the identity of an authenticated client."""

from __future__ import annotations

from typing import Final, NamedTuple

USER_TYPE: Final = "User"


class Principal(NamedTuple):
    """A type, which is `User` except in ACLs written by other tools, and a name. Texts compare case-sensitively."""

    type: str
    name: str

    def __str__(self) -> str:
        """As ACLs and super.users contain it: `User:alice`."""
        return f"{self.type}:{self.name}"


ANONYMOUS: Final = Principal(USER_TYPE, "ANONYMOUS")
"""Of every client on a listener that does not authenticate."""


def user(name: str) -> Principal:
    """Return the principal of a user."""
    return Principal(USER_TYPE, name)


def parse_principal(text: str) -> Principal:
    """Parse `Type:name`; the name may contain colons. Raises ValueError."""
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise ValueError(f"{text!r} is not a principal, such as User:alice")
    return Principal(kind, name)
