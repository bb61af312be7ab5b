"""A second broker that mirrors the topics of all rounds, and its comparison with the source."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas import Admin, AdminConfig, TopicPartition
from tests.support.daemon import Daemon
from tests.support.mirrors.copies import MIRROR
from tests.torture.soak.checker import Anomaly
from tests.torture.soak.copy_checker import find_differences
from tests.torture.soak.final_read import EARLIEST, LATEST, read_all
from tests.torture.soak.history import Final
from tests.torture.soak.load.stage import Stage
from tests.torture.soak.promotion import promote
from tests.torture.soak.waiting import WAIT_S, lacking_after_a_time

_TOPICS = "(plain|ledger|keyed|trimmed|pipe)-.*"
_GROUPS = "(classic|new|pipe)-.*"


async def begin(mirror: Daemon, source: str) -> None:
    """Let the broker mirror the topics of each round, and the offsets of its groups."""
    async with Admin(AdminConfig(bootstrap=mirror.bootstrap)) as admin:
        await admin.mirrors.create(
            MIRROR, bootstrap=[source], topics=[_TOPICS], groups=[_GROUPS], metadata_max_age_ms=500
        )


async def compare(mirror: Daemon, stage: Stage, final: Final) -> list[Anomaly]:
    """Wait until everything is copied, compare it with the round's final read, and delete it here.

    In every second round the offsets of groups are compared, too, which a mirror copies every five seconds, and some
    topics are promoted.
    """
    places = [TopicPartition(*place) for place in final.records]
    async with Admin(AdminConfig(bootstrap=stage.bootstrap)) as admin:
        ends = {
            place: found.offset for place, found in (await admin.list_offsets(dict.fromkeys(places, LATEST))).items()
        }
    async with Admin(AdminConfig(bootstrap=mirror.bootstrap)) as admin:
        lacking = await _wait(admin, ends)
        if lacking:
            return [Anomaly("no end", f"not copied by the mirror after {WAIT_S:.0f} s: {lacking}")]
        copied = await read_all(mirror.bootstrap, places)
        starts = {
            (place.topic, place.partition): found.offset
            for place, found in (await admin.list_offsets(dict.fromkeys(places, EARLIEST))).items()
        }
        differences = find_differences(final, copied, starts, compacted=[stage.keyed], trimmed=[stage.trimmed])
        found = [each._replace(text=f"mirror: {each.text}") for each in differences]
        if stage.number % 2:
            found += [Anomaly("differing copy", each) for each in await _wait_for_offsets(admin, final)]
            found += await promote(mirror, stage, final)
        for topic in {place.topic for place in places}:
            await admin.delete_topic(topic)
    return found


async def _wait(admin: Admin, ends: Mapping[TopicPartition, int]) -> list[str]:
    """Wait until the mirror has copied up to these offsets; return what it lacks after a time."""

    async def find_lacking() -> list[str]:
        described = await admin.mirrors.describe(MIRROR)
        at = {(each.topic, each.partition): each for each in described.partitions}
        return [
            f"{place} {at.get((place.topic, place.partition))}, of {end}"
            for place, end in ends.items()
            if (found := at.get((place.topic, place.partition))) is None or found.offset < end
        ]

    return await lacking_after_a_time(find_lacking, pause_s=0.1)


async def _wait_for_offsets(admin: Admin, final: Final) -> list[str]:
    """Wait until the mirror has the committed offsets of all groups; return those that differ after a time."""
    groups = sorted({group for group, _ in final.offsets})

    async def find_differing() -> list[str]:
        copied = {
            (group, (place.topic, place.partition)): committed.offset
            for group in groups
            for place, committed in (await admin.group_offsets(group)).items()
        }
        return [
            f"{group}, {place}: {copied.get((group, place))} at the mirror, {offset} at the source"
            for (group, place), offset in final.offsets.items()
            if copied.get((group, place)) != offset
        ]

    return await lacking_after_a_time(find_differing, pause_s=0.2)
