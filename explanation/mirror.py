"""A mirror as sentences for people: how far its copies are behind, and why one is not copied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from barnabas.explanation.wording import counted
from barnabas.protocol.messages.cluster.mirrors import MirrorDescription, MirroredPartition

_STATES: Final = {
    "waiting": "waits for its leader at the source, or for the source's first answer",
    "copying": "is being copied",
    "caught_up": "has every record of the source",
    "paused": "is paused, like its mirror: `barnabas mirror resume` goes on where it ends",
    "promoted": "was promoted: it is written here, and not copied any more",
}


def sentences_of(mirror: MirrorDescription) -> Iterator[str]:
    """The lines: the mirror, what it does not copy, then each partition that is not up to date."""
    source = ", ".join(mirror.fields.get("bootstrap", ())) or "an unknown source"
    topics = {each.topic for each in mirror.partitions}
    yield (
        f"mirror {mirror.name} of {source} is {mirror.state}: {counted(len(mirror.partitions), 'partition')} of "
        f"{counted(len(topics), 'topic')}"
    )
    if mirror.error is not None:
        yield f"  it makes no progress: {mirror.error}"
    for problem in mirror.problems:
        yield f"  topic {problem.topic}: {problem.reason}"
    late = [each for each in mirror.partitions if each.state != "caught_up" or each.lag_records]
    for each in late:
        yield f"  {partition_sentence(each)}"
    rest = len(mirror.partitions) - len(late)
    if rest:
        yield f"  {counted(rest, 'partition')} {'has' if rest == 1 else 'have'} every record of the source"


def partition_sentence(partition: MirroredPartition) -> str:
    """What one partition lacks, and why it is not copied."""
    return f"{partition.topic}-{partition.partition} {_state(partition)}{_lag(partition)}"


def _state(partition: MirroredPartition) -> str:
    if partition.error is not None:
        return f"is not copied: {partition.error}; it is tried again"
    return _STATES.get(partition.state, f"is {partition.state}")


def _lag(partition: MirroredPartition) -> str:
    if partition.lag_records is None:
        return ""
    if not partition.lag_records:
        return ", and nothing is missing"
    size = "" if partition.lag_bytes is None else f" (about {partition.lag_bytes:,} bytes)"
    since = "" if partition.lag_seconds is None else f"; it had every record {partition.lag_seconds:.1f} s ago"
    records = counted(partition.lag_records, "record")
    verb = "is" if partition.lag_records == 1 else "are"
    return f"; {records}{size} {verb} missing, from offset {partition.offset} to {partition.source_offset}{since}"
