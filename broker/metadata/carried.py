"""CarriedRecords: the records of the metadata log that Barnabas keeps for Kafka and does not serve.

Registrations of brokers and controllers, the migration state, and record types of newer Kafkas. They stay in the log
unchanged, and our snapshots, which replace the log before them, repeat them. For an object with a known identity
(protocol.metadata.identities) the latest state is kept, for all others every record, in order. Values are immutable; a
builder creates the next one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from barnabas.protocol.metadata.identities import NO_OP_KEY, Effect, Identity, identify
from barnabas.protocol.metadata.records import UnknownRecord


class CarriedRecords:
    """The records, iterated in replay order."""

    __slots__ = ("by_identity",)

    def __init__(self, by_identity: Mapping[Identity, tuple[UnknownRecord, ...]] = MappingProxyType({})) -> None:
        self.by_identity: Final = by_identity

    def __eq__(self, other: object) -> bool:
        return self.by_identity == other.by_identity if isinstance(other, CarriedRecords) else NotImplemented

    def __hash__(self) -> int:
        raise TypeError("maps of records have no hash")

    def __iter__(self) -> Iterator[UnknownRecord]:
        for records in self.by_identity.values():
            yield from records

    def __len__(self) -> int:
        return sum(map(len, self.by_identity.values()))

    def counts(self) -> dict[int, int]:
        """Return the number of records by record key."""
        return dict(Counter(record.key for record in self))

    def builder(self) -> CarriedBuilder:
        """Return a builder that starts with these records."""
        return CarriedBuilder(self.by_identity)


class CarriedBuilder:
    """Builds the next value. It copies the map at the first record, because most changes have none."""

    def __init__(self, start: Mapping[Identity, tuple[UnknownRecord, ...]]) -> None:
        self._start = start
        self._changed: dict[Identity, tuple[UnknownRecord, ...]] | None = None
        self._opaque = 0

    def apply(self, record: UnknownRecord) -> None:
        """Apply one record. Call it in log order."""
        if record.key == NO_OP_KEY:
            return
        if self._changed is None:
            self._changed = dict(self._start)
            self._opaque = len(self._start)
        found = identify(record)
        if found is None:
            self._keep(record)
            return
        identity, effect = found
        before = self._changed.pop(identity, ())
        match effect:
            case Effect.SET:
                self._changed[identity] = (record,)
            case Effect.ADD:
                self._changed[identity] = (*before, record)
            case Effect.REMOVE if not before:
                self._keep(record)  # it may remove a record whose version has no known identity

    def build(self) -> CarriedRecords:
        """Return the new value."""
        return CarriedRecords(self._start if self._changed is None else self._changed)

    def _keep(self, record: UnknownRecord) -> None:
        assert self._changed is not None, "the map is copied first"
        identity = Identity("unknown", self._opaque.to_bytes(8, "big"))
        while identity in self._changed:
            self._opaque += 1
            identity = Identity("unknown", self._opaque.to_bytes(8, "big"))
        self._changed[identity] = (record,)
