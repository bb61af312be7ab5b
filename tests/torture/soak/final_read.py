"""What is stored at the end of a round."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from barnabas import Admin, AdminConfig, Consumer, ConsumerConfig, Producer, ProducerConfig, TopicPartition
from tests.torture.soak.history import Final, Place, StoredRecord
from tests.torture.soak.load.stage import PARTITIONS, Stage

_TIMEOUT_S = 120.0
EARLIEST, LATEST = -2, -1


async def read_final(stage: Stage) -> Final:
    """End all transactions, and read everything. Raises TimeoutError if that does not come to an end."""
    async with asyncio.timeout(_TIMEOUT_S):
        for each in sorted(stage.transactional_ids):
            async with Producer(ProducerConfig(bootstrap=stage.bootstrap, transactional_id=each)):
                pass
        found = Final()
        await _read(stage, found)
        async with Admin(AdminConfig(bootstrap=stage.bootstrap)) as admin:
            for group in {each.group for each in stage.history.commits}:
                for place, committed in (await admin.group_offsets(group, require_stable=True)).items():
                    found.offsets[group, (place.topic, place.partition)] = committed.offset
            places = [TopicPartition(*place) for place in found.records]
            # After the read: what was deleted during it is not missing.
            for place, listed in (await admin.list_offsets(dict.fromkeys(places, EARLIEST))).items():
                found.starts[place.topic, place.partition] = listed.offset
    return found


async def _read(stage: Stage, found: Final) -> None:
    places = [TopicPartition(topic, number) for topic in stage.topics() for number in range(PARTITIONS)]
    found.records.update(await read_all(stage.bootstrap, places))


async def read_all(bootstrap: str, places: Sequence[TopicPartition]) -> dict[Place, list[StoredRecord]]:
    """Read all partitions from their starts to their ends, with read_committed."""
    config = ConsumerConfig(bootstrap=bootstrap, offset_reset="earliest", isolation="read_committed")
    found: dict[Place, list[StoredRecord]] = {(each.topic, each.partition): [] for each in places}
    async with Consumer(config) as consumer:
        await consumer.assign(places)
        ends = await consumer.end_offsets(places)
        while any([await consumer.position(each) < ends[each] for each in places]):
            for each in await consumer.poll(5000, timeout_ms=100):
                found[each.topic, each.partition].append((each.offset, each.key, each.value or b""))
    return found
