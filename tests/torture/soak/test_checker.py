"""Each anomaly is found in a small history that has it, and none in a history without."""

from __future__ import annotations

import pytest

from tests.torture.soak.checker import find_anomalies
from tests.torture.soak.copy_checker import find_differences
from tests.torture.soak.history import (
    ABORTED,
    COMMITTED,
    Commit,
    Final,
    GroupSeen,
    History,
    KeyedWrite,
    Place,
    Poll,
    StoredRecord,
    Transaction,
    Write,
)

P: Place = ("plain", 0)
Q: Place = ("plain", 1)


def final(*values: bytes, place: Place = P) -> Final:
    return Final(records={place: [(offset, None, value) for offset, value in enumerate(values)]})


def transaction(name: str, began: int, *writes: tuple[Place, bytes], outcome: str = COMMITTED) -> Transaction:
    return Transaction(name, began, list(writes), [], outcome, began + 1, began + 2)


def cycle() -> History:
    first, second = transaction("first", 1, (P, b"a")), transaction("second", 1, (Q, b"b"))
    first.reads.append(b"b")
    second.reads.append(b"a")
    return History(transactions=[first, second])


def both() -> Final:
    return Final(records={P: [(0, None, b"a")], Q: [(0, None, b"b")]})


FOUND = {
    "lost write": (History(writes=[Write("s", 0, P, 1, b"b")]), final(b"a")),
    "lost write of a transaction": (History(transactions=[transaction("t", 1, (P, b"b"))]), final(b"a")),
    "duplicate": (History(), final(b"a", b"a")),
    "aborted read": (
        History(transactions=[transaction("t", 1, (P, b"x"), outcome=ABORTED)], polls=[Poll("r", P, 9, [(1, b"x")])]),
        final(b"a"),
    ),
    "aborted read at the end": (History(transactions=[transaction("t", 1, (P, b"a"), outcome=ABORTED)]), final(b"a")),
    "intermediate read": (
        History(transactions=[transaction("t", 5, (P, b"a"))], polls=[Poll("r", P, 5, [(0, b"a")])]),
        final(b"a"),
    ),
    "intermediate read of a half": (
        History(transactions=[transaction("t", 1, (P, b"a"), (Q, b"b"), outcome="unknown")]),
        final(b"a"),
    ),
    "write cycle": (
        History(transactions=[transaction("early", 1, (P, b"b")), transaction("late", 9, (P, b"a"))]),
        final(b"a", b"b"),
    ),
    "read cycle": (cycle(), both()),
    "reordered": (History(writes=[Write("s", 0, P, 1, b"b"), Write("s", 1, P, 0, b"a")]), final(b"a", b"b")),
    "non-monotonic poll": (
        History(polls=[Poll("r", P, 1, [(1, b"b")]), Poll("r", P, 2, [(0, b"a")])]),
        final(b"a", b"b"),
    ),
    "skipped poll": (History(polls=[Poll("r", P, 1, [(0, b"a"), (2, b"c")])]), final(b"a", b"b", b"c")),
    "two values": (History(polls=[Poll("r", P, 1, [(0, b"z")])]), final(b"a")),
    "two offsets": (History(polls=[Poll("r", P, 1, [(7, b"a")])]), final(b"a")),
    "offset went back": (
        History(commits=[Commit("g", P, 5, 1, 2), Commit("g", P, 4, 3, 4)]),
        Final(offsets={("g", P): 5}),
    ),
    "offset went back in a fetch": (
        History(commits=[Commit("g", P, 5, 1, 2), Commit("g", P, 4, 3, 4, is_read=True)]),
        Final(offsets={("g", P): 5}),
    ),
    "offset went back at the end": (History(commits=[Commit("g", P, 5, 1, 2)]), Final(offsets={("g", P): 4})),
    "deleted group": (
        History(deleted={"g": 3}, commits=[Commit("g", P, 5, 4, 5, is_read=True)]),
        Final(),
    ),
    "deleted group in a list": (History(deleted={"g": 3}, seen=[GroupSeen("g", 4)]), Final()),
    "deleted group at the end": (History(deleted={"g": 3}), Final(offsets={("g", P): 5})),
    "lost key": (
        History(keyed=[KeyedWrite(P, b"k", 3, is_acknowledged=True)]),
        Final(records={P: [(0, b"k", b"v#2")]}),
    ),
    "aborted read of an abandoned transaction": (
        History(transactions=[Transaction("t", 1, [(P, b"a")], outcome=ABORTED, is_abandoned=True)]),
        final(b"a"),
    ),
    "no end": (History(), Final(open=["t"])),
    "fatal error": (History(fatal=["s: out of order"]), final(b"a")),
}


@pytest.mark.parametrize("case", FOUND)
def test_the_anomaly_is_found(case: str) -> None:
    history, stored = FOUND[case]

    kinds = {each.kind for each in find_anomalies(history, stored)}

    assert [kind for kind in kinds if case.startswith(kind)], kinds
    assert len(kinds) == 1 or case in ("two values", "two offsets", "duplicate"), kinds


@pytest.mark.parametrize("outputs", [(), (b"of:a", b"of:a"), (b"of:a", b"of:b")])
def test_inputs_without_exactly_one_output_are_found(outputs: tuple[bytes, ...]) -> None:
    stored = final(b"a")
    stored.records["out", 0] = [(offset, None, value) for offset, value in enumerate(outputs)]

    assert "not exactly once" in {each.kind for each in find_anomalies(History(), stored, pipes=[("plain", "out")])}


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    history = History(
        writes=[Write("s", 0, P, 0, b"a"), Write("s", 1, P, 3, b"d")],
        transactions=[
            transaction("t", 1, (P, b"b")),
            transaction("gone", 4, (P, b"x"), outcome=ABORTED),
            Transaction("unknown and absent", 7, [(P, b"y"), (Q, b"y")]),
            Transaction("abandoned", 8, [(P, b"z")], outcome=ABORTED, is_abandoned=True),
        ],
        polls=[Poll("r", P, 3, [(0, b"a"), (1, b"b")]), Poll("r", P, 20, [(3, b"d")]), Poll("r/2", P, 21, [(0, b"a")])],
        commits=[
            Commit("g", P, 2, 1, 4),
            Commit("g", P, 1, 2, 3),
            Commit("g", P, 4, 5, 6),
            Commit("d", P, 1, 2, 3, is_read=True),
        ],
        keyed=[KeyedWrite(Q, b"k", 3, is_acknowledged=True), KeyedWrite(Q, b"k", 4, is_acknowledged=False)],
        deleted={"d": 9},
        seen=[GroupSeen("d", 8)],
    )
    stored = Final(
        records={P: [(0, None, b"a"), (1, None, b"b"), (3, None, b"d")], Q: [(8, b"k", b"v#3")]},
        offsets={("g", P): 4},
    )

    assert find_anomalies(history, stored) == []


def test_what_retention_may_have_deleted_is_not_lost() -> None:
    history = History(writes=[Write("s", 0, P, 3, b"a"), Write("s", 1, P, 9, b"b")])

    found = find_anomalies(history, Final(records={P: [(9, None, b"b")]}, starts={P: 5}), trimmed=["plain"])

    assert found == []


A: StoredRecord = (0, None, b"a")
B: StoredRecord = (1, None, b"b")


OTHERS: list[list[StoredRecord]] = [
    [],
    [A],
    [A, (1, None, b"c")],
    [A, (2, None, b"b")],
    [A, B, (2, None, b"c")],
    [B, A],
    [A, B, B],
]


@pytest.mark.parametrize("copied", OTHERS)
def test_a_copy_that_differs_is_found(copied: list[StoredRecord]) -> None:
    (found,) = find_differences(final(b"a", b"b"), {P: copied}, {P: 0})

    assert found.kind == "differing copy"


def test_a_copy_may_have_been_compacted_or_trimmed_further() -> None:
    keyed, trimmed = ("keyed", 0), ("trimmed", 0)
    stored = Final(records={keyed: [(0, b"k", b"v#1"), (4, b"k", b"v#2")], trimmed: [A, B]}, starts={trimmed: 0})
    copied: dict[Place, list[StoredRecord]] = {keyed: [(4, b"k", b"v#2")], trimmed: [B]}

    assert not list(find_differences(stored, copied, {trimmed: 1}, compacted=["keyed"], trimmed=["trimmed"]))
    assert len(list(find_differences(stored, {}, {trimmed: 1}, compacted=["keyed"], trimmed=["trimmed"]))) == 2
