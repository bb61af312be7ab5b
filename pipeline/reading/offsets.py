"""Offsets in options and checkpoints: `{"orders": {"0": 23, "1": -2}}`, as Spark's Kafka source writes them.

-2 is the earliest and -1 the latest offset. A checkpoint holds real offsets only: the next to read of each partition.
It also records each topic's id, `"orders@<topic id>": {}`, so that a topic deleted and created again is not mistaken
for the first one. No topic name contains an @, and Spark's Kafka source ignores an entry without partitions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from barnabas.pipeline.errors import OptionError
from barnabas.protocol.topic_partition import TopicPartition

Offsets = dict[TopicPartition, int]
TopicIds = dict[str, str]
"""Topic -> the text of its id. Topics with an unknown id (logs of Kafka before 2.8) are left out."""

LATEST: Final = -1
EARLIEST: Final = -2

_ID_MARK: Final = "@"
_INT64_MAX: Final = (1 << 63) - 1
_MAX_PARTITION: Final = (1 << 31) - 1


class BoundKind(Enum):
    """The form in which a bound is given."""

    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSETS = "offsets of each partition"
    TIMESTAMP = "one timestamp"
    TIMESTAMPS = "timestamps of each partition"


@dataclass(frozen=True, slots=True)
class Bound:
    """Where reading starts or ends. `by_partition` has offsets (possibly EARLIEST and LATEST) or timestamps in ms."""

    kind: BoundKind
    option: str
    timestamp: int = -1
    by_partition: Offsets = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Records of one partition from `start` to `end` (exclusive)."""

    topic_partition: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        """Number of offsets; compaction may have left fewer records."""
        return max(0, self.end - self.start)


def parse_partition_numbers(option: str, text: str, *, what: str, low: int) -> Offsets:
    """Parse `{"topic": {"partition": number}}`. Raises OptionError, naming the option, for anything else.

    `what` is the numbers' meaning, for error messages; `low` is the smallest allowed.
    """
    found: Offsets = {}
    for topic, partitions in _object(option, text).items():
        if not isinstance(partitions, dict):
            raise OptionError(f'option {option}: write {{"{topic}": {{"0": {what}}}}}, not {json.dumps(partitions)}')
        for name, number in partitions.items():
            topic_partition = TopicPartition(topic, _partition(option, topic, name))
            if isinstance(number, bool) or not isinstance(number, int) or not low <= number <= _INT64_MAX:
                raise OptionError(f"option {option}: {json.dumps(number)} is not a valid {what} for {topic_partition}")
            found[topic_partition] = number
    if not found:
        raise OptionError(f"option {option} names no partition")
    return found


def parse_assignment(option: str, text: str) -> frozenset[TopicPartition]:
    """Parse `{"topic": [0, 1]}`. Raises OptionError."""
    found: set[TopicPartition] = set()
    for topic, partitions in _object(option, text).items():
        if not isinstance(partitions, list) or not partitions:
            raise OptionError(f'option {option}: write {{"{topic}": [0, 1]}}, not {json.dumps(partitions)}')
        found.update(TopicPartition(topic, _partition(option, topic, number)) for number in partitions)
    if not found:
        raise OptionError(f"option {option} names no partition")
    return frozenset(found)


def to_spark(offsets: Mapping[TopicPartition, int], ids: Mapping[str, str] | None = None) -> dict[str, dict[str, int]]:
    """Return the form that a checkpoint holds: topics and partitions in order, then the ids of these topics."""
    written: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        written.setdefault(topic, {})[str(partition)] = offset
    known = ids or {}
    return written | {f"{topic}{_ID_MARK}{known[topic]}": {} for topic in list(written) if topic in known}


def from_spark(written: Mapping[str, Any]) -> Offsets:
    """Parse a checkpoint's offsets. Raises OptionError for another form, which another source has written."""
    return parse_partition_numbers("checkpointLocation", json.dumps(written), what="offset", low=0) if written else {}


def ids_from_spark(written: Mapping[str, Any]) -> TopicIds:
    """Return the topic ids of a checkpoint; Spark's Kafka source writes none."""
    return {topic: topic_id for topic, mark, topic_id in (name.rpartition(_ID_MARK) for name in written) if mark}


def names_of(partitions: Iterable[TopicPartition]) -> str:
    """Format partitions for a message: `a-0, a-1`, at most ten."""
    listed = sorted(partitions)
    more = f" and {len(listed) - 10} more" if len(listed) > 10 else ""
    return ", ".join(map(str, listed[:10])) + more


def _object(option: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise OptionError(f"option {option} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise OptionError(f"option {option} must be a JSON object with a key for each topic, not {text!r}")
    return value


def _partition(option: str, topic: str, written: object) -> int:
    text = str(written)
    if isinstance(written, (str, int)) and text.isascii() and text.isdigit() and int(text) <= _MAX_PARTITION:
        return int(text)
    raise OptionError(f"option {option}: {json.dumps(written)} is not a partition of topic {topic}")
