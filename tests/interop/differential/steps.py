"""The steps of a script, as plain data: what is printed for a failure, and left out one by one to shrink it.

Topics have the script's names, to which a run adds its prefix. Producers are named by the script, because each broker
gives out ids of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.interop.differential.batches import Batch

LOOSE_TOPIC = "loose"
"""A topic for batches of which Kafka stores some that Barnabas refuses: only errors are compared."""


CONNECTIONS = 3
"""Connections of a script to each broker."""


@dataclass(frozen=True)
class _Sent:
    """What is sent over one of the connections; the next step comes after the answer."""

    connection: int = field(default=0, kw_only=True)


@dataclass(frozen=True)
class Produce(_Sent):
    """One Produce request; records are null, or batches one after the other."""

    version: int
    acks: int
    topics: tuple[tuple[str, tuple[tuple[int, tuple[Batch, ...] | None], ...]], ...]
    transactional_id: str | None = None


@dataclass(frozen=True)
class FetchPart:
    """One partition of a Fetch request."""

    partition: int
    offset: int
    max_bytes: int
    leader_epoch: int = -1
    last_epoch: int = -1


@dataclass(frozen=True)
class InSession:
    """What a Fetch says of its session. Id and next epoch are those that the broker gave the session of this name."""

    name: str
    epoch: int | None = None
    """0 opens a session and -1 closes it; None: the next one."""
    epoch_shift: int = 0
    id_shift: int = 0
    forgotten: tuple[tuple[str, tuple[int, ...]], ...] = ()


@dataclass(frozen=True)
class Fetch(_Sent):
    """One Fetch request."""

    version: int
    topics: tuple[tuple[str, tuple[FetchPart, ...]], ...]
    max_bytes: int
    min_bytes: int
    max_wait_ms: int
    isolation: int
    session: InSession | None = None


@dataclass(frozen=True)
class ListOffsets(_Sent):
    """One ListOffsets request: partition, timestamp and leader epoch by topic."""

    version: int
    topics: tuple[tuple[str, tuple[tuple[int, int, int], ...]], ...]
    isolation: int


@dataclass(frozen=True)
class DeleteRecords(_Sent):
    """One DeleteRecords request: partition and offset by topic."""

    version: int
    topics: tuple[tuple[str, tuple[tuple[int, int], ...]], ...]


@dataclass(frozen=True)
class EpochEnds(_Sent):
    """One OffsetForLeaderEpoch request: partition, current epoch and asked epoch by topic."""

    version: int
    topics: tuple[tuple[str, tuple[tuple[int, int, int], ...]], ...]


@dataclass(frozen=True)
class InitProducer(_Sent):
    """Gets a producer id for the name `producer`, of which the script uses id and epoch from then on."""

    version: int
    producer: str
    transactional_id: str | None = None
    continues: bool = False
    """Send the present id and epoch, as a producer that goes on after an error."""
    epoch_shift: int = 0


@dataclass(frozen=True)
class AddPartitions(_Sent):
    """Adds partitions to the transaction of a producer (AddPartitionsToTxn up to version 3)."""

    version: int
    producer: str
    transactional_id: str
    topics: tuple[tuple[str, tuple[int, ...]], ...]
    epoch_shift: int = 0


@dataclass(frozen=True)
class EndTransaction(_Sent):
    """Ends the transaction of a producer; waits until its markers are written."""

    version: int
    producer: str
    transactional_id: str
    commit: bool
    epoch_shift: int = 0


@dataclass(frozen=True)
class DescribeProducers(_Sent):
    """Describes the producers of one topic's partitions."""

    topic: str
    partitions: tuple[int, ...]


@dataclass(frozen=True)
class SetConfig(_Sent):
    """Sets a config of a topic, and waits until it has taken effect."""

    topic: str
    name: str
    value: str


@dataclass(frozen=True)
class Recreate(_Sent):
    """Deletes a topic and creates it again."""

    topic: str
    partitions: int
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Clean(_Sent):
    """Lets both cleaners clean a topic once, and compares what they leave."""

    topic: str


@dataclass(frozen=True)
class Restart(_Sent):
    """Stops both brokers, or kills them, compares their directories, and starts them again."""

    kill: bool


Step = (
    Produce
    | Fetch
    | ListOffsets
    | DeleteRecords
    | EpochEnds
    | InitProducer
    | AddPartitions
    | EndTransaction
    | DescribeProducers
    | SetConfig
    | Recreate
    | Clean
    | Restart
)


def kind(step: Step) -> str:
    """Return what is counted of a step."""
    is_in_session = isinstance(step, Fetch) and step.session is not None
    return f"{type(step).__name__}{' in a session' if is_in_session else ''}"


@dataclass(frozen=True)
class Script:
    """Topics, and what is done with them."""

    seed: int
    topics: Mapping[str, tuple[int, Mapping[str, str]]]
    """Number of partitions and configs by name."""
    steps: tuple[Step, ...]
    has_own_clock: bool
    """Whether a topic stamps its records itself."""
    has_codecs: bool = False
    """Whether topics recompress what they get."""

    def __str__(self) -> str:
        lines = [f"seed {self.seed}"]
        lines += [
            f"  topic {name}: {count} partitions, {dict(configs)}" for name, (count, configs) in self.topics.items()
        ]
        return "\n".join(lines + [f"  {number}: {step}" for number, step in enumerate(self.steps)])
