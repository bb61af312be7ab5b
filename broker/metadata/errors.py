"""Errors of opening a data directory, each a sentence for the operator who starts the broker."""

from __future__ import annotations

from barnabas.protocol.metadata.levels import NEWEST_KNOWN_LEVEL, OLDEST_KNOWN_LEVEL, is_known_level


class MetadataError(Exception):
    """The directory cannot be opened as it is; the message names the fault, its place and the remedy.

    A check that raises it has changed nothing on disk.
    """

    def __init__(self, sentence: str, *, remedy: str = "") -> None:
        """`remedy` is given where this error needs a more specific one than its kind."""
        super().__init__(f"{sentence}: {remedy}" if remedy else sentence)
        self.sentence = sentence
        self.remedy = remedy


class UnsupportedMetadataError(MetadataError):
    """The metadata is intact, but of a version that this program does not support.

    `is_older`: the version precedes the oldest supported one, which Kafka 3.x still reads; no Kafka up to 4.3 reads a
    newer one.
    """

    is_older = False
    hides_security = False
    """Whether the version is that of a record about users, ACLs, tokens or quotas."""


class ReplayError(Exception):
    """A record that contradicts the state before it."""


def ensure_known_level(level: int, source: str) -> None:
    """Raise UnsupportedMetadataError unless `level`, the `metadata.version` found in `source`, is supported."""
    if not is_known_level(level):
        error = UnsupportedMetadataError(
            f"{source} has metadata.version {level}; this program knows {OLDEST_KNOWN_LEVEL} to {NEWEST_KNOWN_LEVEL} "
            "(Apache Kafka 3.3 to 4.3)"
        )
        error.is_older = level < OLDEST_KNOWN_LEVEL
        raise error
