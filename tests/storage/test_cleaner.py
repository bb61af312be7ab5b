"""One round of the cleaner over one log: what stays, what goes, and what the files look like afterwards."""

from __future__ import annotations

import pytest

from barnabas.broker.storage.log import PartitionLog
from barnabas.protocol.compression import Codec
from tests.support.cleaning import clean, last_of_each_key
from tests.support.storage import START_MS, LogBench, append, batch, log_config, read_batches, read_records

COMPACT = log_config(compact=True, delete=False, segment_bytes=1 << 20, index_interval_bytes=100)


def fill(log: PartitionLog, *keys: str, codec: int = 0, **header: int) -> None:
    """One batch: `k` a record of key k, `k-` its tombstone."""
    append(
        log,
        batch(
            *(
                (START_MS + log.log_end_offset + index, key[0].encode(), None if key[1:] else b"v" * 20)
                for index, key in enumerate(keys)
            ),
            codec=codec,
            **header,
        ),
    )


@pytest.mark.parametrize("codec", list(Codec))
def test_the_last_record_of_every_key_stays_at_its_offset(bench: LogBench, codec: Codec) -> None:
    log = bench.open(COMPACT)
    fill(log, "a", "b", "a", codec=codec)
    fill(log, "c", "b", codec=codec)
    log.roll()
    fill(log, "a", "d", codec=codec)
    log.roll()
    fill(log, "b", codec=codec)
    expected = last_of_each_key(read_records(log, 0))
    before = [record for record in read_records(log) if record.offset < 7]

    result = clean(log)

    assert read_records(log) == last_of_each_key(before) + read_records(log, 7)
    assert {record.key for record in expected} == {record.key for record in read_records(log)}
    assert result.next_dirty_offset == 7
    assert [segment.base_offset for segment in log.segments] == [0, 7]
    assert result.stats.messages_read == 7
    assert result.stats.messages_written == 4
    assert [found.codec for found in read_batches(log)] == [codec] * 3
