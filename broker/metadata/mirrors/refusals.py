"""Which changes of a mirrored topic are refused: the one place that decides.

While a topic is mirrored only the mirror writes to it, and what would make its records differ from the source's is
refused with POLICY_VIOLATION (44), which no client retries. Groups read it and commit offsets as for any topic, and it
may be deleted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from barnabas.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.protocol.mirrors.topic import TopicMirror

ALTERABLE_CONFIGS: Final = frozenset(
    {
        "flush.acks.all",
        "flush.messages",
        "flush.ms",
        "file.delete.delay.ms",
        "index.interval.bytes",
        "max.compaction.lag.ms",
        "min.cleanable.dirty.ratio",
        "min.compaction.lag.ms",
        "min.insync.replicas",
        "preallocate",
        "segment.index.bytes",
        "segment.jitter.ms",
        "unclean.leader.election.enable",
    }
)
"""Topic properties that change neither a mirrored topic's records nor how long they are kept.

All others follow the source, segment.bytes and segment.ms included: they bound what retention deletes. A mirror that
does not follow configs leaves all of them to this cluster.
"""


def mirror_refusal(topic: str, mirror: str) -> BrokerError:
    """Return the error of a change of a read-only topic, to be raised."""
    return BrokerError(
        ErrorCode.POLICY_VIOLATION,
        f"topic '{topic}' is read-only: it is copied by mirror '{mirror}'; "
        f"`barnabas mirror promote {mirror}` makes its topics writable",
    )


def read_only_mirror(image: MetadataImage, topic: str) -> str | None:
    """Return the mirror for which the topic is read-only; None if clients may change the topic."""
    found: TopicMirror | None = image.mirror_of(topic)
    return found.mirror if found is not None and found.is_read_only else None


def ensure_not_mirrored(image: MetadataImage, topic: str) -> None:
    """Raise BrokerError POLICY_VIOLATION if the topic is read-only because of a mirror."""
    mirror = read_only_mirror(image, topic)
    if mirror is not None:
        raise mirror_refusal(topic, mirror)


def ensure_configs_alterable(image: MetadataImage, topic: str, names: Iterable[str]) -> None:
    """Raise BrokerError POLICY_VIOLATION if a changed property of a mirrored topic has to follow the source."""
    mirror = read_only_mirror(image, topic)
    definition = None if mirror is None else image.mirrors.definitions.get(mirror)
    if mirror is None or (definition is not None and not definition.follow_configs):
        return
    followed = sorted(set(names) - ALTERABLE_CONFIGS)
    if followed:
        raise BrokerError(
            ErrorCode.POLICY_VIOLATION,
            f"{', '.join(followed)} of topic '{topic}' cannot be changed: the topic is copied by mirror '{mirror}'; "
            "change the source's topic instead",
        )
