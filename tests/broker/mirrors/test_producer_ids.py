"""Producer ids that this broker hands out never are those of copied batches."""

from __future__ import annotations

from typing import cast

from barnabas.broker.metadata.mirrors.producer_ids import RANGE_IDS, own_range
from barnabas.broker.metadata_changes import MetadataChanges
from barnabas.broker.producer_ids import ProducerIds


class Blocks:
    """Blocks of two ids: one of a cluster without mirrors, and those of its own range."""

    def __init__(self) -> None:
        self.blocks = iter([range(1000, 1002), range(RANGE_IDS, RANGE_IDS + 2)])

    async def take_producer_id_block(self) -> range:
        return next(self.blocks)


async def test_ids_of_a_block_taken_before_the_first_mirror_are_not_handed_out() -> None:
    lowest = 0
    ids = ProducerIds(cast("MetadataChanges", Blocks()), lambda: lowest)
    assert await ids.next_id() == 1000
    lowest = RANGE_IDS
    assert ids.take() is None
    assert [await ids.next_id() for _ in range(2)] == [RANGE_IDS, RANGE_IDS + 1]


def test_ranges_of_clusters_are_large_positive_and_do_not_overlap() -> None:
    ranges = {own_range(f"cluster-{number}").start for number in range(100)}
    assert len(ranges) == 100
    assert all(first % RANGE_IDS == 0 and RANGE_IDS <= first < 2**62 for first in ranges)
