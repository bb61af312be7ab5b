"""Each anomaly of a share group is found in a small history that has it, and none in a history without."""

from __future__ import annotations

import pytest

from tests.torture.soak.checker import find_anomalies
from tests.torture.soak.history import (
    ABORTED,
    ACCEPTED,
    REJECTED,
    RELEASED,
    Acknowledgement,
    Delivery,
    Final,
    History,
    Place,
    Transaction,
)
from tests.torture.soak.share_checker import find_share_anomalies

P: Place = ("plain", 0)
LIMIT = 25
STORED = Final(records={P: [(0, None, b"a")]})


def got(session: str, since: int, tick: int, deliveries: int = 1) -> Delivery:
    return Delivery(session, P, since, tick, 0, b"a", deliveries)


def ended(delivery: Delivery, kind: str, began: int, answered: int | None) -> Acknowledgement:
    return Acknowledgement(delivery, kind, began, answered)


A, LATER, SOON = got("a", 1, 2), got("b", 5, 6, 2), got("b", 3, 6, 2)
FOUND = {
    "lost delivery": ([], []),
    "lost delivery that was released": ([A], [ended(A, RELEASED, 3, 4)]),
    "lost delivery that a member had": ([A, LATER], []),
    "delivery after its end": ([A, LATER], [ended(A, ACCEPTED, 3, 4)]),
    "delivery after its end as rejected": ([A, LATER], [ended(A, REJECTED, 3, 4), ended(LATER, ACCEPTED, 7, None)]),
    "two holders": ([A, SOON], [ended(A, ACCEPTED, 7, 8)]),
    "two holders, of whom one releases": ([A, SOON], [ended(A, RELEASED, 7, 8), ended(SOON, ACCEPTED, 9, 10)]),
    "delivery count above the limit": ([got("a", 1, 2, LIMIT + 1)], [ended(A, ACCEPTED, 3, 4)]),
    "delivery count that went back": (
        [A, got("b", 5, 6)],
        [ended(A, RELEASED, 3, 4), ended(LATER, ACCEPTED, 7, 8)],
    ),
}
INNOCENT = {
    "accepted": ([A], [ended(A, ACCEPTED, 3, 4)]),
    "accepted without an answer": ([A], [ended(A, ACCEPTED, 3, None)]),
    "accepted again after a call without an answer": (
        [A, LATER],
        [ended(A, ACCEPTED, 3, None), ended(LATER, ACCEPTED, 7, 8)],
    ),
    "exhausted": ([got("a", 1, 2, LIMIT)], []),
    "fetched before the acceptance by another member": ([A, SOON], [ended(A, ACCEPTED, 3, 4)]),
    "released and delivered again": ([A, LATER], [ended(A, RELEASED, 3, 4), ended(LATER, ACCEPTED, 7, 8)]),
    "lost by its member": ([A, SOON], [ended(A, ACCEPTED, 7, None), ended(SOON, ACCEPTED, 8, 9)]),
    "lost with its broker, without a count": (
        [A, got("b", 5, 6)],
        [ended(A, RELEASED, 3, None), ended(A, ACCEPTED, 7, None)],
    ),
}


@pytest.mark.parametrize("case", FOUND)
def test_the_anomaly_is_found(case: str) -> None:
    deliveries, acknowledgements = FOUND[case]
    history = History(deliveries=deliveries, acknowledgements=acknowledgements)

    (found,) = find_share_anomalies(history, STORED, "plain", LIMIT)

    assert case.startswith(found.kind), found


@pytest.mark.parametrize("case", INNOCENT)
def test_nothing_is_found_where_nothing_is_wrong(case: str) -> None:
    deliveries, acknowledgements = INNOCENT[case]
    history = History(deliveries=deliveries, acknowledgements=acknowledgements)

    assert find_share_anomalies(history, STORED, "plain", LIMIT) == []
    assert find_anomalies(history, STORED) == []


def test_records_of_other_topics_need_no_delivery() -> None:
    assert find_share_anomalies(History(), STORED, "ledger", LIMIT) == []


def test_deliveries_are_compared_with_what_is_stored_and_aborted() -> None:
    transaction = Transaction("t", 1, [(P, b"b")], outcome=ABORTED)
    history = History(transactions=[transaction], deliveries=[A._replace(value=b"b")])

    assert {each.kind for each in find_anomalies(history, STORED)} == {"two values", "aborted read"}
