"""The demo's comparison finds every kind of difference; test_demo covers a run without any."""

from __future__ import annotations

import pytest

from barnabas.clients.records import ConsumerRecord
from demo.flights import Flight, load_flights
from demo.verification import Comparison


def read(partition: int, offset: int, timestamp: int, key: bytes | None, value: bytes | None) -> ConsumerRecord:
    return ConsumerRecord("flights", partition, offset, timestamp, 0, key, value, ())


FLIGHTS = [Flight(b"A", b"a0", 10), Flight(b"B", b"b0", 10), Flight(b"A", b"a1", 20), Flight(b"A", b"a2", 30)]
READ = [
    read(0, 0, 10, b"A", b"a0"),
    read(1, 0, 10, b"B", b"b0"),
    read(0, 1, 20, b"A", b"a1"),
    read(0, 2, 30, b"A", b"a2"),
]


def _compare(records: list[ConsumerRecord]) -> Comparison:
    comparison = Comparison(FLIGHTS)
    for record in records:
        comparison.take(record)
    comparison.finish()
    return comparison


def test_what_came_as_it_was_sent_has_no_difference() -> None:
    comparison = _compare(READ)

    assert comparison.differences == []
    assert comparison.records == 4
    assert comparison.keys == 2


@pytest.mark.parametrize(
    ("records", "difference"),
    [
        (READ[:-1], "1 of 3 records with the key b'A' were never received"),
        ([*READ[:2], READ[3]], "offset 1 was expected"),
        ([*READ, read(0, 3, 30, b"A", b"a2")], "this is an extra one"),
        ([*READ, read(0, 3, 30, b"C", b"c")], "the key b'C' was never sent"),
        ([*READ, read(0, 3, 30, None, b"c")], "the key None was never sent"),
        ([*READ[:3], READ[3]._replace(value=b"a3")], "has the value b'a3' instead of b'a2'"),
        ([*READ[:3], READ[3]._replace(value=None)], "has the value None instead of b'a2'"),
        ([*READ[:3], READ[3]._replace(timestamp=31)], "the timestamp is 31 instead of 30"),
        ([*READ[:3], READ[3]._replace(partition=1, offset=1)], "the key b'A' belongs to partition 0"),
        (
            [*READ[:2], READ[3]._replace(offset=1), READ[2]._replace(offset=2)],
            "has the value b'a2' instead of b'a1'",
        ),
    ],
)
def test_every_kind_of_difference_is_found(records: list[ConsumerRecord], difference: str) -> None:
    comparison = _compare(records)

    assert comparison.difference_count > 0
    assert any(difference in sentence for sentence in comparison.differences), comparison.differences


def test_a_flood_of_differences_is_counted_but_not_kept() -> None:
    comparison = _compare([read(0, 0, 0, b"?", b"")] * 1000)

    assert comparison.difference_count > 1000
    assert len(comparison.differences) <= 10


def test_the_first_record_at_a_time_is_the_first_one_not_before_it() -> None:
    comparison = _compare(READ)

    assert [comparison.first_offset_at(0, time) for time in (0, 10, 11, 30, 31)] == [0, 0, 1, 2, None]
    assert comparison.first_offset_at(7, 0) is None


def test_flights_are_sorted_by_their_hour_and_keep_the_files_order_within_it() -> None:
    flights = load_flights(2000)

    assert len(flights) == 2000
    times = [flight.timestamp_ms for flight in flights]
    assert times == sorted(times)
    assert flights[0] == Flight(
        b"N14228",
        b"2013,1,1,517,515,2,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z",
        1357034400000,
    )
    assert flights[1].key == b"N24211"
    assert any(flight.key == b"NA" for flight in flights)
