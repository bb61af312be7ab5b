"""Drawn configs of topics."""

from __future__ import annotations

import random
from collections.abc import Mapping

_APPEND_TIME = "message.timestamp.type"
_UNROLLED = "1048576"
"""A size of segments that no script fills."""
_ROLLING = ("segment.ms", "segment.index.bytes")
REFUSING = ("max.message.bytes", "message.timestamp.before.max.ms", "message.timestamp.after.max.ms")
"""Configs by which a topic refuses sound batches."""
CHANGED: Mapping[str, list[str]] = {
    "index.interval.bytes": ["0", "150", "4096"],
    "max.message.bytes": ["500", "1048588"],
    "compression.type": ["producer", "uncompressed"],
    "message.timestamp.before.max.ms": ["3600000", "9223372036854775807"],
    "retention.ms": ["-1"],
}
"""Configs that change within a script, with their values."""
CODECS = ["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"]
CHANGED_WITH_CODECS: Mapping[str, list[str]] = {
    "compression.type": CODECS,
    "message.timestamp.before.max.ms": ["3600000", "9223372036854775807"],
}
"""The same where topics recompress what they get."""
CHANGED_WITH_CLEANER: Mapping[str, list[str]] = {
    "index.interval.bytes": ["0", "150", "4096"],
    "delete.retention.ms": ["0", "86400000"],
    "cleanup.policy": ["compact", "compact,delete"],
}
"""The same where topics are cleaned."""
MIN_LAG = "min.compaction.lag.ms"
AN_HOUR, A_DAY, NEVER = "3600000", "86400000", "9223372036854775807"
_AFTER_MAX = "message.timestamp.after.max.ms"
CHANGED_WITH_CLEANER_AND_CODECS: Mapping[str, list[str]] = {
    "compression.type": CODECS,
    "delete.retention.ms": ["0", A_DAY],
    "cleanup.policy": ["compact", "compact,delete"],
}
"""The same where they recompress what they get, too."""
_OPTIONAL: Mapping[str, list[str]] = {
    "cleanup.policy": ["compact", "compact,delete"],
    _APPEND_TIME: ["LogAppendTime"],
    "compression.type": ["uncompressed"],
    "max.message.bytes": ["400", "1500"],
    "message.timestamp.before.max.ms": ["3600000"],
    "message.timestamp.after.max.ms": ["1000", "10000000000000"],
    "segment.ms": ["60000", "600000"],
    "segment.index.bytes": ["48", "100"],
}


def draw(
    chance: random.Random, *, has_own_clock: bool, restarts: bool, codecs: bool, cleans: bool, lags: bool
) -> dict[str, str]:
    """Draw the configs of one topic.

    `has_own_clock`: it may stamp its records, and then does not roll by time. `codecs`: it recompresses what it gets,
    and nothing depends on the size of that. `cleans`: it is compacted, at the moments that a script chooses; `lags`:
    perhaps without its new records. With `codecs` and `cleans` it also takes records of any future.
    """
    drawn = {
        "internal.segment.bytes": chance.choice(["2000", "4096", "16384", _UNROLLED, _UNROLLED]),
        "index.interval.bytes": chance.choice(["0", "1", "100", "300", "4096"]),
        "retention.ms": "-1",
        "min.cleanable.dirty.ratio": "1",
    }
    for name, values in _OPTIONAL.items():
        if chance.random() < 0.15:
            drawn[name] = chance.choice(values)
    if restarts:
        drawn.pop("segment.index.bytes", None)  # Kafka does not start if a recovered segment has too many entries
    if codecs:
        drawn.pop("max.message.bytes", None)
        drawn |= {
            "compression.type": chance.choice(CODECS),
            "internal.segment.bytes": _UNROLLED,
            "index.interval.bytes": chance.choice(["0", "1"]),
        }
    if cleans:
        drawn.pop(_APPEND_TIME, None)  # a rewritten batch would have the time of its append as its base, too
        drawn.pop("segment.index.bytes", None)  # Kafka's cleaner merges segments with more entries than an index has
        drawn |= {
            "cleanup.policy": chance.choice(["compact", "compact", "compact,delete"]),
            "internal.segment.bytes": chance.choice(["1200", "2000", "4096"]),
            "delete.retention.ms": chance.choice(["0", A_DAY]),
        }
        if codecs:  # rewritten batches have the size of each broker's library: segments roll by the records' times
            drawn |= {"internal.segment.bytes": _UNROLLED, _AFTER_MAX: NEVER, "segment.ms": AN_HOUR}
            return drawn
    if lags:
        drawn.pop("message.timestamp.before.max.ms", None)  # it would refuse the old records
        if chance.random() < 0.6:
            drawn[MIN_LAG] = A_DAY
    drawn.pop("segment.ms" if has_own_clock else _APPEND_TIME, None)
    return drawn


def refuses(configs: Mapping[str, str]) -> bool:
    """Return whether a topic with these configs may refuse sound batches."""
    return any(name in configs and (name, configs[name]) != (_AFTER_MAX, NEVER) for name in REFUSING)


def rolls(configs: Mapping[str, str]) -> bool:
    """Return whether a topic with these configs has several segments."""
    return configs.get("internal.segment.bytes") != _UNROLLED or not configs.keys().isdisjoint(_ROLLING)
