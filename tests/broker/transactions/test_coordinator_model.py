"""The transaction coordinator under random clients, timeouts, restarts, failing disks, lost answers and late batches.

Logs, partitions and the path of a Produce are real; the clock and the faults are the test's. After every step:

    markers    of each producer in each partition are those of the decisions in `__transaction_state`, in their order
               and with their epochs, one for each decision; only a decision that is not completed may lack some
    epochs     of a transactional id never go back
    answers    what was committed or aborted by an answer has that outcome in the partitions

At the end all faults are mended and all clients are gone: no transaction stays open anywhere, so no late batch has
opened one that nobody ends.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.end_marker import decode_end_marker
from barnabas.protocol.records.reader import read_records
from tests.support.transactions.host import STATE, Decision, TransactionHost
from tests.support.transactions.modelled_producers import Ledger, Loss, ModelledProducer, Written
from tests.support.transactions.real_partitions import Place

PLACES: tuple[Place, ...] = (("t", 0), ("t", 1), ("u", 0))
IDS = ("first", "second")
LEVELS = (0, 2)
LOSSES = st.sampled_from([Loss.NONE, Loss.NONE, Loss.ANSWER, Loss.REQUEST])
TIMEOUT_MS = 20_000
INSTANCES_MAX = 4


class End(NamedTuple):
    """The decision about one transaction."""

    epoch: int
    is_commit: bool
    client_version: int
    offset: int


Ends = dict[tuple[Place, int], list[End]]
"""Decisions by place and producer id, in the order of the log."""

Markers = dict[tuple[Place, int], list[tuple[int, bool]]]
"""Offset and outcome of each marker, by place and producer id."""


class CoordinatorMachine(RuleBasedStateMachine):
    """Clients that follow the protocol at random times, on a network that loses and delays messages."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="barnabas-coordinator-"))
        self.ledger = Ledger()
        self.producers: list[ModelledProducer] = []
        self.excused: set[tuple[Place, int]] = set()
        """Place, and offset of a decision that has no marker there: see `_excuse`."""
        self.host: TransactionHost

    @initialize(feature=st.sampled_from(LEVELS))
    def a_broker_starts(self, feature: int) -> None:
        self.feature = feature
        self.host = TransactionHost(self.directory, PLACES, feature)
        self.host.before_start = self._excuse

    @rule(transactional_id=st.sampled_from(IDS), level=st.sampled_from(LEVELS), is_lost=st.booleans())
    def a_client_comes(self, transactional_id: str, level: int, is_lost: bool) -> None:
        if len(self.producers) < INSTANCES_MAX:
            level = min(level, self.feature)
            producer = ModelledProducer(self.host, self.ledger, transactional_id, level, TIMEOUT_MS)
            producer.init(is_lost=is_lost)
            self.producers.append(producer)

    @precondition(lambda self: self.producers)
    @rule(
        data=st.data(),
        places=st.lists(st.sampled_from(PLACES), min_size=1, unique=True).map(tuple),
        loss=LOSSES,
    )
    def a_client_writes(self, data: st.DataObject, places: tuple[Place, ...], loss: Loss) -> None:
        self._one(data).write(places, loss)

    @precondition(lambda self: self.producers)
    @rule(
        data=st.data(),
        place=st.sampled_from([*PLACES, STATE]),
        fault=st.sampled_from(["full", "fails", "killed"]),
        number=st.integers(1, 3),
        is_commit=st.booleans(),
        is_lost=st.booleans(),
    )
    def a_client_ends_while_a_disk_fails_or_the_broker_is_killed(
        self, data: st.DataObject, place: Place, fault: str, number: int, is_commit: bool, is_lost: bool
    ) -> None:
        producer = self._one(data)
        producer.write(PLACES)
        partition = self.host.partitions.all[place]
        partition.is_full = fault == "full"
        partition.fails_in = number if fault == "fails" else 0
        partition.kills_in = number if fault == "killed" else 0
        producer.end(is_commit=is_commit, is_lost=is_lost)
        partition = self.host.partitions.all[place]  # another one after a kill
        partition.fails_in = partition.kills_in = 0

    @precondition(lambda self: self.producers)
    @rule(data=st.data(), is_commit=st.booleans(), is_lost=st.sampled_from([False, False, True]))
    def a_client_ends_its_transaction(self, data: st.DataObject, is_commit: bool, is_lost: bool) -> None:
        self._one(data).end(is_commit=is_commit, is_lost=is_lost)

    @precondition(lambda self: self.producers)
    @rule(data=st.data(), is_lost=st.booleans())
    def a_client_initializes_again(self, data: st.DataObject, is_lost: bool) -> None:
        self._one(data).init(is_lost=is_lost)

    @precondition(lambda self: self.producers)
    @rule(data=st.data())
    def a_client_vanishes(self, data: st.DataObject) -> None:
        self._one(data).vanish()
        self._bury()

    @precondition(lambda self: self.ledger.late)
    @rule(data=st.data())
    def a_late_batch_arrives(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.ledger.late) - 1))
        transactional_id, adds, place, batch = self.ledger.late[index]  # it stays: it may arrive twice
        self.host.produce(transactional_id, {place: batch}, adds=adds)

    @rule(milliseconds=st.sampled_from([1, 1000, TIMEOUT_MS // 2, TIMEOUT_MS, 2 * TIMEOUT_MS]))
    def time_passes(self, milliseconds: int) -> None:
        self.host.loop.pass_time(milliseconds)

    @rule(place=st.sampled_from([*PLACES, STATE]))
    def a_disk_is_full(self, place: Place) -> None:
        self.host.partitions.all[place].is_full = True

    @rule()
    def all_disks_have_room(self) -> None:
        self.host.mend()

    @rule()
    def the_broker_is_killed_and_starts(self) -> None:
        self.host.restart()

    def _one(self, data: st.DataObject) -> ModelledProducer:
        self._bury()
        if not self.producers:
            self.a_client_comes("first", 2, is_lost=False)
        return self.producers[data.draw(st.integers(0, len(self.producers) - 1))]

    def _bury(self) -> None:
        self.producers = [each for each in self.producers if not each.is_dead]

    @invariant()
    def markers_are_those_of_the_decisions(self) -> None:
        decided, unfinished = self._decided()
        for place in PLACES if hasattr(self, "host") else ():
            for producer, missing in self._without_marker(place, decided).items():
                assert missing in ([], unfinished.get((place, producer), [])), f"{place}: {producer} lacks {missing}"

    def _without_marker(self, place: Place, decided: Ends) -> dict[int, list[End]]:
        """Return the decisions without a marker by producer id; markers must be those of the others, in their order."""
        left = {producer: list(ends) for (where, producer), ends in decided.items() if where == place}
        for batch in self.host.partitions.batches(place):
            if batch.is_control:
                end = batch.producer_epoch, _is_commit(batch)
                ends = left.get(batch.producer_id, [])
                assert ends, f"{place}: a marker {end} of producer {batch.producer_id}, which nothing has decided"
                assert ends[0][:2] == end, f"{place}: a marker {end} of {batch.producer_id}, decided was {ends[0]}"
                del ends[0]
        return left

    def _excuse(self) -> None:
        """Note the markers that a start need not write.

        Before transaction.version 2, a partition to which a prepared transaction wrote nothing looks as if it had its
        marker.
        """
        decided, unfinished = self._decided()
        for place in PLACES:
            without = self._without_marker(place, decided)
            for (where, producer), (end,) in unfinished.items():
                is_open = self.host.partitions.all[place].has_open_transaction(producer)
                if where == place and end.client_version < 2 and end in without[producer] and not is_open:
                    self.excused.add((place, end.offset))

    @invariant()
    def epochs_never_go_back(self) -> None:
        last: dict[str, Decision] = {}
        for each in self._states():
            before = last.get(each.transactional_id)
            if before is not None and before.producer_id == each.producer_id:
                assert each.producer_epoch >= before.producer_epoch, (before, each)
            last[each.transactional_id] = each

    @invariant()
    def answers_are_never_undone(self) -> None:
        markers = self._markers()
        for outcome, written in ((True, self.ledger.committed), (False, self.ledger.aborted)):
            for each in written:
                found = _outcome(each, markers)
                assert found in (outcome, None), f"{each} was answered as {outcome}"
                if found is None:  # its marker waits for a disk
                    assert self.host.partitions.all[each.place].has_open_transaction(each.producer_id)

    def _states(self) -> list[Decision]:
        return self.host.decisions() if hasattr(self, "host") else []

    def _decided(self) -> tuple[Ends, Ends]:
        """Return all decisions but the excused, and those of transactions that are not completed."""
        decided: Ends = defaultdict(list)
        last: dict[str, Decision] = {}
        for each in self._states():
            last[each.transactional_id] = each
            for place, end in self._ends(each):
                decided[place, each.producer_id].append(end)
        unfinished = {(place, each.producer_id): [end] for each in last.values() for place, end in self._ends(each)}
        return decided, unfinished

    def _ends(self, state: Decision) -> Iterator[tuple[Place, End]]:
        if state.is_prepared:
            end = End(state.producer_epoch, state.is_commit, state.client_version, state.offset)
            yield from ((place, end) for place in state.partitions if (place, state.offset) not in self.excused)

    def _markers(self) -> Markers:
        """Return all markers."""
        found: Markers = defaultdict(list)
        if not hasattr(self, "host"):
            return found
        for place in PLACES:
            for batch in self.host.partitions.batches(place):
                if batch.is_control:
                    found[place, batch.producer_id].append((batch.base_offset, _is_commit(batch)))
        return found

    def teardown(self) -> None:
        if not hasattr(self, "host"):
            return
        try:
            self._let_all_end()
        finally:
            self.host.close()
            shutil.rmtree(self.directory)

    def _let_all_end(self) -> None:
        for producer in self.producers:
            producer.vanish()
        self.host.mend()
        for transactional_id, adds, place, batch in self.ledger.late:
            self.host.produce(transactional_id, {place: batch}, adds=adds)
        self.host.loop.pass_time(3 * TIMEOUT_MS)
        self.markers_are_those_of_the_decisions()
        self.epochs_never_go_back()
        self.answers_are_never_undone()
        _, unfinished = self._decided()
        assert unfinished == {}
        for place in PLACES:
            log = self.host.partitions.all[place].log
            assert log.last_stable_offset == log.high_watermark, f"{place} has a transaction that nobody ends"


def _is_commit(batch: RecordBatch) -> bool:
    (record,) = read_records(batch)
    return decode_end_marker(record.key, record.value).is_commit


def _outcome(written: Written, markers: Markers) -> bool | None:
    """Return the outcome in the first marker after the batch."""
    after = (commit for offset, commit in markers[written.place, written.producer_id] if offset > written.offset)
    return next(after, None)


TestCoordinator = CoordinatorMachine.TestCase
TestCoordinator.settings = settings(
    max_examples=25, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
