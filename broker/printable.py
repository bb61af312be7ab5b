"""Client-supplied text in log lines: a name that contains a line break must not look like two log lines."""

from __future__ import annotations

from typing import Final

MAX_CHARACTERS: Final = 249
"""Longer text is cut. The length of the longest topic name."""


def printable(text: str) -> str:
    """Return `text`, quoted and cut if it could mislead a reader of the log."""
    if text.isprintable() and len(text) <= MAX_CHARACTERS:
        return text
    return repr(text[:MAX_CHARACTERS])
