"""Client-supplied text in log lines: a name that contains a line break must not look like two log lines."""

from __future__ import annotations

from typing import Final

MAX_CHARACTERS: Final = 249
"""The length of the longest topic name."""


def printable(text: str, longest: int = MAX_CHARACTERS) -> str:
    """Return `text`, quoted and cut if it is too long, or could mislead a reader of the log."""
    if text.isprintable() and len(text) <= longest:
        return text
    return repr(text[:longest])
