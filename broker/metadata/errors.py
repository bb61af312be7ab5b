"""The errors by which opening a data directory fails: a sentence for the person who starts the broker."""

from __future__ import annotations

from barnabas.protocol.metadata.levels import NEWEST_KNOWN_LEVEL, OLDEST_KNOWN_LEVEL, is_known_level


class MetadataError(Exception):
    """What the directory holds cannot be opened as it is; the message says what, where and what to do about it.

    Nothing on disk was changed when it is raised by a check.
    """

    def __init__(self, sentence: str, *, remedy: str = "") -> None:
        """`remedy`: what to do about it, where that is more than can be said of its kind."""
        super().__init__(f"{sentence}: {remedy}" if remedy else sentence)
        self.sentence = sentence
        self.remedy = remedy


class UnsupportedMetadataError(MetadataError):
    """The metadata is whole, but of a version that this program does not know.

    `is_older`: from before the oldest known, which Kafka 3.x still reads; no Kafka to 4.3 reads what is newer.
    """

    is_older = False


def ensure_known_level(level: int, source: str) -> None:
    """Raises UnsupportedMetadataError unless `metadata.version` `level`, found in `source`, is one that we know."""
    if not is_known_level(level):
        error = UnsupportedMetadataError(
            f"{source} has metadata.version {level}; this program knows {OLDEST_KNOWN_LEVEL} to {NEWEST_KNOWN_LEVEL} "
            "(Apache Kafka 3.3 to 4.3)"
        )
        error.is_older = level < OLDEST_KNOWN_LEVEL
        raise error
