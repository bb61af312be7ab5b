"""Which fetch session gives way to a new one: the cases of Kafka's FetchSessionTest, with a clock of the test."""

from __future__ import annotations

import pytest

from barnabas.broker.handlers.data import fetch_session_cache
from barnabas.broker.handlers.data.fetch_session import FetchSession, next_epoch
from barnabas.broker.handlers.data.fetch_session_cache import FetchSessionCache
from barnabas.broker.probes import FetchSessionProbe
from barnabas.protocol.messages.data.fetch import FetchPartition, FetchTopic
from barnabas.protocol.uuids import ZERO_UUID

EVICTION_S = 120.0


class Sessions:
    """A cache with a clock, and sessions by a letter."""

    def __init__(self, slots: int) -> None:
        self.now = 1000.0
        self.probe = FetchSessionProbe()
        self.cache = FetchSessionCache(slots, lambda: self.now, self.probe)
        self.by_letter: dict[str, FetchSession] = {}

    def create(self, letter: str, size: int, *, is_follower: bool = False) -> bool:
        if not self.cache.make_room(size, is_privileged=is_follower):
            return False
        session_id = self.cache.new_session_id()
        reader = (0, is_follower, None, 0)
        session = FetchSession(session_id, reader, uses_topic_ids=False, is_privileged=is_follower, now=self.now)
        for number in range(size):
            session.add("t", ZERO_UUID, FetchPartition(partition=number, offset=0, max_bytes=1))
        self.cache.add(session)
        self.by_letter[letter] = session
        return True

    def touch(self, letters: str) -> None:
        for letter in letters:
            self.cache.touch(self.by_letter[letter])

    @property
    def cached(self) -> str:
        cached = [name for name, each in self.by_letter.items() if self.cache.get(each.session_id) is each]
        assert self.probe.sessions == len(cached)
        assert self.probe.partitions == sum(len(self.by_letter[name].partitions) for name in cached)
        return "".join(sorted(cached))


def test_a_full_cache_creates_no_session_for_two_minutes() -> None:
    sessions = Sessions(2)
    assert sessions.create("a", 1)
    assert sessions.create("b", 1)
    sessions.now += EVICTION_S
    assert not sessions.create("c", 50)
    assert (sessions.cached, sessions.probe.evictions) == ("ab", 0)


def test_a_session_that_is_unused_for_two_minutes_gives_way_the_longest_unused_first() -> None:
    sessions = Sessions(3)
    for letter in "abc":
        sessions.create(letter, 10)
        sessions.now += 1
    sessions.touch("a")
    sessions.now += EVICTION_S + 1
    assert sessions.create("d", 1)
    assert sessions.cached == "acd"
    assert sessions.create("e", 1)
    assert (sessions.cached, sessions.probe.evictions) == ("ade", 2)


def test_a_larger_session_replaces_the_smallest_one_that_is_two_minutes_old() -> None:
    sessions = Sessions(3)
    for letter, size in (("a", 5), ("b", 3), ("c", 4)):
        sessions.create(letter, size)
    sessions.now += EVICTION_S + 1
    sessions.touch("abc")
    assert not sessions.create("d", 3)  # as many partitions as the smallest are not more
    assert sessions.create("d", 4)
    assert sessions.cached == "acd"
    assert not sessions.create("e", 4)
    assert sessions.create("e", 5)
    assert sessions.cached == "ade"


def test_a_session_is_worth_what_it_has_now() -> None:
    sessions = Sessions(2)
    sessions.create("a", 5)
    sessions.create("b", 4)
    sessions.now += EVICTION_S + 1
    sessions.by_letter["a"].update([], [("t", number) for number in range(3)])
    sessions.by_letter["b"].update(
        [FetchTopic(name="t", partitions=[FetchPartition(partition=9, offset=0, max_bytes=1)])], []
    )
    sessions.touch("ab")
    assert sessions.create("c", 3)
    assert sessions.cached == "bc"


def test_a_followers_session_replaces_any_consumers_and_no_consumers_session_replaces_it() -> None:
    sessions = Sessions(2)
    sessions.create("a", 10)
    sessions.create("b", 20)
    assert sessions.create("c", 1, is_follower=True)
    assert sessions.create("d", 1, is_follower=True)
    assert sessions.cached == "cd"
    assert not sessions.create("e", 5, is_follower=True)
    sessions.now += EVICTION_S + 1
    sessions.touch("cd")
    assert not sessions.create("e", 50)
    assert sessions.create("e", 2, is_follower=True)
    assert len(sessions.cached) == 2


def test_a_cache_without_slots_creates_no_session() -> None:
    assert not Sessions(0).create("a", 1)


def test_partitions_of_all_sessions_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_session_cache, "MAX_PARTITIONS", 10)
    monkeypatch.setattr(fetch_session_cache, "MAX_SESSION_PARTITIONS", 8)
    sessions = Sessions(100)
    assert sessions.create("a", 6)
    assert not sessions.create("b", 5)
    assert sessions.create("c", 2)
    grown = sessions.by_letter["a"]
    for number, has_room in ((6, True), (7, True), (8, False)):
        grown.update([FetchTopic(name="t", partitions=[FetchPartition(partition=number, offset=0, max_bytes=1)])], [])
        assert sessions.cache.has_room_for_more(grown) == has_room
    sessions.now += EVICTION_S + 1
    assert sessions.create("d", 5)
    assert sessions.cached == "cd"


def test_a_removed_session_leaves_nothing_behind() -> None:
    sessions = Sessions(1)
    for _ in range(5):
        sessions.create("a", 3)
        sessions.now += EVICTION_S + 1
        sessions.touch("a")
        sessions.cache.remove(sessions.by_letter["a"])
        assert sessions.cached == ""
    sessions.create("b", 3)
    assert not sessions.create("c", 9)


def test_the_epoch_after_the_largest_is_one() -> None:
    assert [next_epoch(1), next_epoch(2**31 - 1)] == [2, 1]
