r"""Parsing of a Java .properties file like java.util.Properties.load, with the line of each entry.

A logical line is a key, a separator and a value. It continues in the next line if it ends in an odd number of
backslashes; leading white space of the next line is dropped. Lines that begin with # or ! are comments (only at the
start of a logical line), blank lines are skipped. The key ends at the first =, : or white space that no
backslash precedes. \t \n \r \f \uXXXX are escapes; a backslash before anything else is dropped. The last entry of a
key wins.

Java reads bytes as Latin-1. We read UTF-8, so that paths need no escapes, and Latin-1 if the file is not UTF-8.
"""

from __future__ import annotations

from typing import NamedTuple

_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Entry(NamedTuple):
    """One key and value, and the number of its first line, counted from 1."""

    key: str
    value: str
    line: int


class BadLineError(ValueError):
    """A line that Java's parser refuses; `line` counts from 1."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line


def decode(content: bytes) -> str:
    """Decode the file as UTF-8 with or without a byte order mark, else as Latin-1, in which every byte is legal."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def parse_properties(text: str) -> list[Entry]:
    """Parse all entries in file order, repeated keys included. Raises BadLineError.

    A single backslash at the end of the file is ignored; Java sometimes reads it as an entry with an empty key.
    """
    # Not splitlines(): it also splits at characters that do not end a line in Java.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    entries = []
    index = 0
    while index < len(lines):
        line_number = index + 1
        logical = lines[index].lstrip(_BLANK)
        index += 1
        if not logical or logical[0] in "#!":
            continue
        if _goes_on(logical):
            logical, index = _joined(logical, lines, index)
        if not logical:
            continue
        key, value = _split(logical)
        entries.append(Entry(_unescape(key, line_number), _unescape(value, line_number), line_number))
    return entries


def _joined(piece: str, lines: list[str], index: int) -> tuple[str, int]:
    """Join a piece that goes on with the lines from `index`; return the logical line and the index after it.

    Pieces are looked at one by one and joined once: a long value may have as many lines as the file.
    """
    pieces = []
    is_empty = True
    while _goes_on(piece):
        pieces.append(piece[:-1])
        is_empty = is_empty and len(piece) == 1
        piece = lines[index].lstrip(_BLANK) if index < len(lines) else ""
        if is_empty and piece[:1] in ("#", "!"):
            return "", index  # nothing before it: a comment
        index += 1
    return "".join([*pieces, piece]), index


def _goes_on(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    end = 0
    while end < len(line) and line[end] not in "=: \t\f":
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANK)
    return line[:end], rest


def _unescape(text: str, line: int) -> str:
    if "\\" not in text:
        return text
    parts = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character != "\\":
            parts.append(character)
            continue
        escaped = text[position : position + 1]
        position += 1
        if escaped == "u":
            digits = text[position : position + 4]
            if len(digits) < 4 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
                raise BadLineError(line, r"a \u escape needs four hexadecimal digits")
            parts.append(chr(int(digits, 16)))
            position += 4
        else:
            parts.append(_ESCAPES.get(escaped, escaped))
    return "".join(parts)
