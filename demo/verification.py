"""Whether what was read is what was sent: every key, value and timestamp, and the order of each key's records."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from barnabas.clients.records import ConsumerRecord
from demo.flights import Flight

_SHOWN_DIFFERENCES = 10


class Comparison:
    """Takes records one by one, each partition's in the order of its offsets, and gathers differences.

    A key's records must come from one partition, in the order in which they were sent, with nothing lost, repeated or
    changed; offsets of a partition must count 0, 1, 2, ...
    """

    def __init__(self, flights: Sequence[Flight]) -> None:
        self._flights = flights
        self._rows_of_key: dict[bytes, list[int]] = {}
        for row, flight in enumerate(flights):
            self._rows_of_key.setdefault(flight.key, []).append(row)
        self._taken_of_key = dict.fromkeys(self._rows_of_key, 0)
        self._partition_of_key: dict[bytes, int] = {}
        self._timestamps: dict[int, list[int]] = {}
        self.records = 0
        self.difference_count = 0
        self.differences: list[str] = []

    @property
    def keys(self) -> int:
        """How many different keys were sent."""
        return len(self._rows_of_key)

    def take(self, record: ConsumerRecord) -> None:
        """Compare one record with what is due for its key."""
        self.records += 1
        timestamps = self._timestamps.setdefault(record.partition, [])
        if record.offset != len(timestamps):
            self._differ(record, f"offset {len(timestamps)} is due")
        timestamps.append(record.timestamp)
        key = record.key
        rows = None if key is None else self._rows_of_key.get(key)
        if key is None or rows is None:
            self._differ(record, f"the key {key!r} was never sent")
            return
        taken = self._taken_of_key[key]
        self._taken_of_key[key] = taken + 1
        if taken == len(rows):
            self._differ(record, f"{len(rows)} records were sent with the key {key!r}, this is one more")
            return
        if self._partition_of_key.setdefault(key, record.partition) != record.partition:
            self._differ(record, f"the key {key!r} belongs to partition {self._partition_of_key[key]}")
        due = self._flights[rows[taken]]
        if record.value != due.value:
            self._differ(record, f"the key {key!r} has the value {record.value!r} where {due.value!r} is due")
        if record.timestamp != due.timestamp_ms:
            self._differ(record, f"the timestamp is {record.timestamp} where {due.timestamp_ms} was sent")

    def finish(self) -> None:
        """Count what never came."""
        for key, rows in self._rows_of_key.items():
            missing = len(rows) - self._taken_of_key[key]
            if missing > 0:
                self._add(f"{missing} of {len(rows)} records with the key {key!r} never came")

    def first_offset_at(self, partition: int, timestamp_ms: int) -> int | None:
        """The offset of the first record at or after a time, by the records that were read; None if there is none."""
        timestamps = self._timestamps.get(partition, [])
        offset = bisect_left(timestamps, timestamp_ms)
        return offset if offset < len(timestamps) else None

    def _differ(self, record: ConsumerRecord, sentence: str) -> None:
        self._add(f"partition {record.partition} offset {record.offset}: {sentence}")

    def _add(self, sentence: str) -> None:
        self.difference_count += 1
        if len(self.differences) < _SHOWN_DIFFERENCES:
            self.differences.append(sentence)
