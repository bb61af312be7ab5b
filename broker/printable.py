"""Texts of clients in log lines: a name with a line break in it must not look like two lines of ours."""

from __future__ import annotations

from typing import Final

MAX_CHARACTERS: Final = 249
"""What is longer is cut. The longest name that a topic may have."""


def printable(text: str) -> str:
    """`text` as it is, or quoted and cut where it could mislead a reader of the log."""
    if text.isprintable() and len(text) <= MAX_CHARACTERS:
        return text
    return repr(text[:MAX_CHARACTERS])
