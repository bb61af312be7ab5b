"""What is stored at the end of a round."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from barnabas import Admin, AdminConfig, Consumer, ConsumerConfig, Producer, ProducerConfig, TopicPartition
from tests.torture.soak.history import Final, Place, StoredRecord
from tests.torture.soak.load.stage import PARTITIONS, Stage

_TIMEOUT_S = 120.0
_TIMEOUTS_END_S = 60.0
"""How long the broker has to end what has timed out, which takes it two seconds."""
EARLIEST, LATEST = -2, -1
_READ_COMMITTED = 1


async def end_transactions(stage: Stage, transactional_ids: Iterable[str]) -> None:
    """End what these ids have left open."""
    for each in sorted(transactional_ids):
        async with Producer(ProducerConfig(bootstrap=stage.bootstrap, transactional_id=each)):
            pass


async def read_final(stage: Stage) -> Final:
    """End all transactions but the abandoned ones, and read everything once the broker has ended those.

    Raises TimeoutError if the reading does not come to an end.
    """
    async with asyncio.timeout(_TIMEOUT_S):
        await end_transactions(stage, stage.transactional_ids)
        found = Final(open=await _left_open(stage))
        await _read(stage, found)
        async with Admin(AdminConfig(bootstrap=stage.bootstrap)) as admin:
            for group in {each.group for each in stage.history.commits} | stage.history.deleted.keys():
                for place, committed in (await admin.group_offsets(group, require_stable=True)).items():
                    found.offsets[group, (place.topic, place.partition)] = committed.offset
            places = [TopicPartition(*place) for place in found.records]
            # After the read: what was deleted during it is not missing.
            for place, listed in (await admin.list_offsets(dict.fromkeys(places, EARLIEST))).items():
                found.starts[place.topic, place.partition] = listed.offset
    return found


async def _left_open(stage: Stage) -> list[str]:
    """Wait until no transaction of the ledger is open; name those that still are after a time."""
    places = [TopicPartition(stage.ledger, number) for number in range(PARTITIONS)]
    wanted = dict.fromkeys(places, LATEST)
    async with Admin(AdminConfig(bootstrap=stage.bootstrap)) as admin:
        try:
            async with asyncio.timeout(_TIMEOUTS_END_S):
                while await admin.list_offsets(wanted, isolation=_READ_COMMITTED) != await admin.list_offsets(wanted):
                    await asyncio.sleep(0.1)
        except TimeoutError:
            names = {each.producer_id: each.transactional_id for each in await admin.list_transactions()}
            left = await admin.open_transactions(places)
            return [f"{names.get(each.producer_id, 'a forgotten id')}, {each}" for each in left] or [f"of {places}"]
    return []


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
