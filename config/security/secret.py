"""Secret: a password or a key, which no text that is made of it shows."""

from __future__ import annotations

from typing import Final

HIDDEN: Final = "[hidden]"
"""What logs, errors and descriptions show instead, as Kafka does."""


class Secret:
    """A confidential text. It is no `str`, so that no format, join or JSON encoder writes it by accident."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text. Do not log it, and do not keep it."""
        return self._text

    def matches(self, given: str) -> bool:
        """Compare in a time that does not depend on where the texts differ."""
        import hmac  # late: it loads OpenSSL's hashes, 4 ms of a start

        return hmac.compare_digest(self._text.encode(), given.encode())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self.matches(other._text)

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return HIDDEN
