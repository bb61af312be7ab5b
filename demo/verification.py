"""Comparison of the records read with those sent: key, value, timestamp, and the order of each key's records."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from barnabas.clients.records import ConsumerRecord
from demo.flights import Flight

_SHOWN_DIFFERENCES = 10


class Comparison:
    """Compares records one by one, each partition's in offset order, and collects differences.

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
        """Return the number of distinct keys sent."""
        return len(self._rows_of_key)

    def take(self, record: ConsumerRecord) -> None:
        """Compare one record with the next one expected for its key."""
        self.records += 1
        timestamps = self._timestamps.setdefault(record.partition, [])
        if record.offset != len(timestamps):
            self._differ(record, f"offset {len(timestamps)} was expected")
        timestamps.append(record.timestamp)
        key = record.key
        rows = None if key is None else self._rows_of_key.get(key)
        if key is None or rows is None:
            self._differ(record, f"the key {key!r} was never sent")
            return
        taken = self._taken_of_key[key]
        self._taken_of_key[key] = taken + 1
        if taken == len(rows):
            self._differ(record, f"{len(rows)} records were sent with the key {key!r}; this is an extra one")
            return
        if self._partition_of_key.setdefault(key, record.partition) != record.partition:
            self._differ(record, f"the key {key!r} belongs to partition {self._partition_of_key[key]}")
        due = self._flights[rows[taken]]
        if record.value != due.value:
            self._differ(record, f"the key {key!r} has the value {record.value!r} instead of {due.value!r}")
        if record.timestamp != due.timestamp_ms:
            self._differ(record, f"the timestamp is {record.timestamp} instead of {due.timestamp_ms}")

    def finish(self) -> None:
        """Count the records that were never received."""
        for key, rows in self._rows_of_key.items():
            missing = len(rows) - self._taken_of_key[key]
            if missing > 0:
                self._add(f"{missing} of {len(rows)} records with the key {key!r} were never received")

    def first_offset_at(self, partition: int, timestamp_ms: int) -> int | None:
        """Return the offset of the first record read with this timestamp or a later one; None without one."""
        timestamps = self._timestamps.get(partition, [])
        offset = bisect_left(timestamps, timestamp_ms)
        return offset if offset < len(timestamps) else None

    def _differ(self, record: ConsumerRecord, sentence: str) -> None:
        self._add(f"partition {record.partition} offset {record.offset}: {sentence}")

    def _add(self, sentence: str) -> None:
        self.difference_count += 1
        if len(self.differences) < _SHOWN_DIFFERENCES:
            self.differences.append(sentence)
