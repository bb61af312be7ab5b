"""The versions of Apache Kafka that would not start on a metadata log, as far as its content shows.

    metadata.version   each version supports its own and older levels; 4.x none below 7 (3.3-IV3)
    other features     a version stops at a level that it does not support, also at one that a later record lowers, if
                       the newest snapshot is older
    kraft.version 1    voters in the log: 3.9 and later
    segment.bytes      4.1 and later exit immediately on a topic below 1 MiB; 4.0 still accepts it

Source: Kafka's MetadataVersion, Feature, KRaftVersion, LogConfig (KIP-1030). The levels are those in the classes of
3.7.2, 3.8.1, 3.9.1, 4.0.0, 4.1.1, 4.2.0 and 4.3.0. The limit on segments was tried on 4.0.0 (accepted), 4.2.0 and 4.3.0
(refused); for 4.1.1 it is that of its class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from barnabas.broker.metadata.directories.report import KAFKA_VERSIONS, Problem, kafka
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.log.log_replay import ReplayedLog
from barnabas.protocol.metadata.levels import (
    METADATA_VERSION,
    NEWEST_SHARE_VERSION,
    NEWEST_STREAMS_VERSION,
    NEWEST_TRANSACTION_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
    TRANSACTION_VERSION,
)
from barnabas.protocol.metadata.records import FeatureLevelRecord, MetadataRecord

NEWEST_LEVELS = {"3.7": 19, "3.8": 20, "3.9": 21, "4.0": 25, "4.1": 27, "4.2": 29, "4.3": 30}
"""The newest production `metadata.version` of each version."""

_FEATURES_SINCE = {
    "group.version": "4.0",
    TRANSACTION_VERSION: "4.0",
    "eligible.leader.replicas.version": "4.0",
    SHARE_VERSION: "4.1",
    STREAMS_VERSION: "4.2",
}
"""The first version that supports a level above 0 of the feature."""

_NEWEST_FEATURE_LEVELS = {
    **dict.fromkeys(_FEATURES_SINCE, 1),
    TRANSACTION_VERSION: NEWEST_TRANSACTION_VERSION,
    SHARE_VERSION: NEWEST_SHARE_VERSION,
}

TRANSACTION_VERSION_PROBLEM = "transaction-version"
"""Code of a `transaction.version` that Kafka 3.x does not support; it can be lowered."""

SHARE_VERSION_PROBLEM = "share-version"
"""Code of a `share.version` that Kafka before 4.1 does not support; it can be lowered."""

STREAMS_VERSION_PROBLEM = "streams-version"
"""Code of a `streams.version` that Kafka before 4.2 does not support; it can be lowered."""

_LOWERED = {
    TRANSACTION_VERSION: (TRANSACTION_VERSION_PROBLEM, NEWEST_TRANSACTION_VERSION),
    SHARE_VERSION: (SHARE_VERSION_PROBLEM, NEWEST_SHARE_VERSION),
    STREAMS_VERSION: (STREAMS_VERSION_PROBLEM, NEWEST_STREAMS_VERSION),
}
"""Features that `barnabas handover` lowers: the code of the problem, and the newest level that this is known for."""

EARLIER_LEVEL_PROBLEM = "earlier-level"
"""Code of a level that was lowered after the newest snapshot; a new snapshot ends the problem."""

_KRAFT_VOTERS_SINCE = "3.9"
_SMALLEST_SEGMENT_BYTES = 1024 * 1024
_NO_SMALL_SEGMENTS_SINCE = "4.1"


def kafka_problems(replayed: ReplayedLog, bootstrap: Sequence[MetadataRecord] | None) -> list[Problem]:
    """Return the problems that stop some versions."""
    features = dict(replayed.image.features)
    features.update((record.name, record.level) for record in bootstrap or () if isinstance(record, FeatureLevelRecord))
    return [
        *_level_problems(features),
        *_earlier_level_problems(features, replayed.highest_levels),
        *_kraft_problems(replayed.kraft_version),
        *_segment_problems(replayed.image),
    ]


def _level_problems(features: dict[str, int]) -> Iterator[Problem]:
    for name, level in features.items():
        too_old = _too_old_for(name, level)
        if not too_old:
            continue
        sentence = f"{name} is {level}, which Apache Kafka {_span(too_old)} does not support"
        stops = frozenset(map(kafka, too_old))
        code, newest = _LOWERED.get(name, ("", -1))
        if level <= newest:
            remedy = f"let `barnabas handover --kafka-version {too_old[-1]}` lower it to 0"
            yield Problem(code, sentence, remedy, stops)
        else:
            remedy = f"start a Kafka newer than {too_old[-1]}; this level is never lowered"
            yield Problem("feature-level", sentence, remedy, stops)


def _earlier_level_problems(features: dict[str, int], highest: Mapping[str, int]) -> Iterator[Problem]:
    for name, level in highest.items():
        now = features.get(name, 0)
        too_old = [version for version in _too_old_for(name, level) if version not in _too_old_for(name, now)]
        if too_old:
            yield Problem(
                EARLIER_LEVEL_PROBLEM,
                f"{name} was {level} before it was lowered, and Apache Kafka {_span(too_old)} stops at that record",
                f"let `barnabas handover --kafka-version {too_old[-1]}` write a snapshot of the metadata after it",
                frozenset(map(kafka, too_old)),
            )


def _too_old_for(name: str, level: int) -> list[str]:
    """Return the versions that do not support a level of a feature."""
    if name == METADATA_VERSION:
        return [version for version in KAFKA_VERSIONS if NEWEST_LEVELS[version] < level]
    since = _FEATURES_SINCE.get(name)
    is_newer = level > _NEWEST_FEATURE_LEVELS.get(name, level)
    return [version for version in KAFKA_VERSIONS if is_newer or (since is not None and level > 0 and version < since)]


def _segment_problems(image: MetadataImage) -> Iterator[Problem]:
    for name in image.topics:
        text = image.topic_configs(name).get("segment.bytes", "")
        if text.isdigit() and int(text) < _SMALLEST_SEGMENT_BYTES:
            yield Problem(
                "small-segments",
                f"topic {name} has segment.bytes={text}, and Apache Kafka "
                f"{_NO_SMALL_SEGMENTS_SINCE} and later exits at start if it is below 1048576",
                f"barnabas topic alter {name} --config segment.bytes=1048576, or let `barnabas handover` raise it",
                frozenset(kafka(version) for version in KAFKA_VERSIONS if version >= _NO_SMALL_SEGMENTS_SINCE),
            )


def _span(versions: Sequence[str]) -> str:
    return versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"


def _kraft_problems(kraft_version: int) -> Iterator[Problem]:
    if kraft_version:
        too_old = [version for version in KAFKA_VERSIONS if version < _KRAFT_VOTERS_SINCE]
        yield Problem(
            "kraft-version",
            f"kraft.version is {kraft_version} (the voters are in the log), unsupported by Kafka {_span(too_old)}",
            f"start Apache Kafka {_KRAFT_VOTERS_SINCE} or later",
            frozenset(map(kafka, too_old)),
        )
