"""The anomalies of share groups.

    lost delivery           a stored record was neither accepted nor rejected, and no count says that its deliveries
                            were exhausted
    delivery after its end  a record was delivered after the answer to its acceptance or rejection
    two holders             a member got a record while another one had it, and could acknowledge it afterwards
    delivery count          a record was delivered more often than the limit, or with a count that went back after the
                            answer to its release

A member learns of a delivery after the broker has decided about it, so only what is certain counts: a delivery happened
after its `since`, and before its `tick`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.torture.soak.checker import Anomaly
from tests.torture.soak.history import RELEASED, Acknowledgement, Delivery, Final, History, Place

_Record = tuple[Place, int]
_UNSEEN = 5
"""Deliveries of one record that a round may have counted without a member that saw them: their answers were cut off."""


def find_share_anomalies(history: History, final: Final, topic: str, limit: int) -> list[Anomaly]:
    """Return everything that is wrong with a group that has read `topic` to its end, with `limit` deliveries."""
    deliveries: dict[_Record, list[Delivery]] = defaultdict(list)
    for delivery in history.deliveries:
        deliveries[delivery.place, delivery.offset].append(delivery)
    answers: dict[_Record, list[Acknowledgement]] = defaultdict(list)
    for answer in history.acknowledgements:
        answers[answer.delivery.place, answer.delivery.offset].append(answer)
    return [
        *_lost(final, topic, limit, deliveries, answers),
        *_after_the_end(deliveries, answers),
        *_two_holders(deliveries, answers),
        *_counts(deliveries, answers, limit),
    ]


def _lost(
    final: Final,
    topic: str,
    limit: int,
    deliveries: dict[_Record, list[Delivery]],
    answers: dict[_Record, list[Acknowledgement]],
) -> Iterator[Anomaly]:
    for place, records in final.records.items():
        for offset, _, value in records if place[0] == topic else ():
            got = deliveries.get((place, offset), [])
            may_be_done = any(each.kind != RELEASED for each in answers.get((place, offset), ()))
            seen = max((each.deliveries for each in got), default=0)
            if not may_be_done and seen < limit - _UNSEEN:
                yield Anomaly(
                    "lost delivery", f"{value!r} at {place}, {offset}, after {len(got)} deliveries {got[-2:]}"
                )


def _after_the_end(
    deliveries: dict[_Record, list[Delivery]], answers: dict[_Record, list[Acknowledgement]]
) -> Iterator[Anomaly]:
    for record, found in answers.items():
        done = [each.ended for each in found if each.kind != RELEASED and each.ended is not None]
        for delivery in deliveries[record] if done else ():
            if delivery.since > min(done):
                yield Anomaly("delivery after its end", f"{record} was done at {min(done)}, then {delivery}")


def _two_holders(
    deliveries: dict[_Record, list[Delivery]], answers: dict[_Record, list[Acknowledgement]]
) -> Iterator[Anomaly]:
    """An acknowledgement that was answered shows that its member had the record from the delivery on."""
    for record, found in answers.items():
        for answer in found:
            held = answer.delivery
            for other in deliveries[record] if answer.ended is not None else ():
                if other.session != held.session and held.tick < other.since and other.tick < answer.began:
                    yield Anomaly("two holders", f"{held} until {answer.began}, and {other}")


def _counts(
    deliveries: dict[_Record, list[Delivery]], answers: dict[_Record, list[Acknowledgement]], limit: int
) -> Iterator[Anomaly]:
    for record, got in deliveries.items():
        for delivery in got:
            if delivery.deliveries > limit:
                yield Anomaly("delivery count", f"{delivery} is above the limit of {limit}")
            for answer in answers.get(record, ()):
                is_before = answer.kind == RELEASED and answer.ended is not None and answer.ended < delivery.since
                if is_before and delivery.deliveries <= answer.delivery.deliveries:
                    yield Anomaly("delivery count", f"{delivery}, after the release of {answer.delivery}")
