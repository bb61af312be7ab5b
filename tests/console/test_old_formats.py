"""Records of format 0 and 1, which Apache Kafka answers as they are stored; Barnabas converts them."""

from __future__ import annotations

import pytest

from barnabas.console.records.reading import entries_of, records_of
from barnabas.protocol.errors import DecodeError
from tests.support.storage.legacy import message, message_sets
from tests.support.storage.records import plain, plain_records

SETS = message_sets()


def test_all_formats_are_shown_with_what_is_stored_about_them() -> None:
    data = b"".join(each.data for each in SETS.values()) + plain(5, base_offset=30)
    shown = [record for entry in entries_of(data) for record in records_of(entry)]
    expected = [record for each in SETS.values() for record in each.records] + plain_records(5, 30)
    assert [tuple(record)[:5] for record in shown] == [tuple(record) for record in expected]
    assert {record.batch.magic for record in shown} == {0, 1, 2}
    assert {record.batch.codec for record in shown} > {"none", "gzip"}
    assert all(record.batch.producer_id == -1 for record in shown)


def test_a_cut_message_ends_the_answer_and_a_damaged_one_is_named() -> None:
    whole = message(3, b"value")
    for size in range(len(whole)):
        assert [each.next_offset for each in entries_of(whole + whole[:size])] == [4]
    (damaged,) = entries_of(whole[:-1] + b"X")
    with pytest.raises(DecodeError):
        list(records_of(damaged))
