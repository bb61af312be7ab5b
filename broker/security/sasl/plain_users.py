"""The users of PLAIN: options `user_<name>="<password>"` of the listener's PlainLoginModule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from barnabas.config.secret import Secret

_NOBODY: Final = Secret("")
"""Compared with the password of an unknown user, so that the answer takes as long as for a known one."""


class PlainUsers:
    """`passwords()` returns the passwords by user at the moment of a login: the configuration may change."""

    def __init__(self, passwords: Callable[[], Mapping[str, Secret]]) -> None:
        self._passwords = passwords

    def verify(self, user: str, password: str) -> bool:
        """Return whether the password is the user's."""
        expected = self._passwords().get(user)
        matches = (expected or _NOBODY).matches(password)
        return matches and expected is not None
