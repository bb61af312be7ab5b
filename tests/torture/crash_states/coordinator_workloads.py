"""Workloads of the coordinators, whose topics have flush.acks.all: a power cut takes nothing that was answered."""

from __future__ import annotations

import random

from barnabas.protocol.topic_partition import TopicPartition
from tests.support.storage.cleaning import clean
from tests.torture.crash_states.coordinators import Coordinators, Place
from tests.torture.crash_states.outcomes import Committed, Committing, Ended, Ending, Transaction, Writing
from tests.torture.crash_states.recording import Recorder
from tests.torture.crash_states.workbench import Workbench

_SYNCED = {"flush_acks_all": True}
_COMPACTED = {"compact": True, "delete": False, "delete_retention_ms": 0}


def group_offsets(recorder: Recorder, choose: random.Random) -> None:
    """Groups commit offsets and are deleted; `__consumer_offsets` rolls and is compacted."""
    bench = Workbench(recorder, changes={**_SYNCED, **_COMPACTED}, begins=False)
    orders = bench.create("orders", 3)
    offsets = bench.create("__consumer_offsets")
    clients = Coordinators(bench.opened)
    bench.begin()
    known: dict[str, set[int]] = {}
    for number in range(16):
        group = choose.choice(("a", "b"))
        if known.get(group) and choose.random() < 0.15:
            gone: dict[Place, int | None] = {(orders.topic, each): None for each in known.pop(group)}
            recorder.note(Committing(group, gone))
            clients.delete_group(group)
            recorder.note(Committed(group, gone))
        else:
            chosen = choose.sample(range(3), choose.choice((1, 2)))
            values = {(orders.topic, each): number * 10 + each for each in chosen}
            recorder.note(Committing(group, dict(values)))
            clients.commit(group, values)
            recorder.note(Committed(group, dict(values)))
            known.setdefault(group, set()).update(chosen)
        if choose.random() < 0.3:
            bench.run_background()
            bench.checkpoint()
        if number in (8, 14):
            bench.log(offsets).roll()
            bench.run_background()
            clean(bench.log(offsets), now_ms=bench.clock.now_ms)
            bench.run_background(1000)
    clients.close()
    bench.abandon()


def transactions(recorder: Recorder, choose: random.Random) -> None:
    """Transactions over two partitions and a group's offsets are committed and aborted."""
    bench = Workbench(recorder, changes=_SYNCED, begins=False)
    accounts = bench.create("accounts", 2).topic
    bench.create("__consumer_offsets")
    bench.create("__transaction_state")
    clients = Coordinators(bench.opened)
    bench.begin()
    producer = clients.initialize("transfers")
    sequences = [0, 0]
    for number in range(5):
        logs = [bench.log(TopicPartition(accounts, each)) for each in range(2)]
        records = {(accounts, each): (log.log_end_offset,) for each, log in enumerate(logs)}
        transaction = Transaction(number, records, "readers", {(accounts, 0): number + 1})
        recorder.note(Writing(transaction))
        clients.begin(producer, [*records, ("__consumer_offsets", 0)])
        for each in range(2):
            place = TopicPartition(accounts, each)
            bench.append(
                place,
                [b"k"],
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                base_sequence=sequences[each],
                is_transactional=True,
                size=choose.choice((40, 300)),
            )
            sequences[each] += 1
            bench.flush(place)
        clients.commit_in_transaction(producer, "readers", {(accounts, 0): number + 1})
        is_commit = choose.random() < 0.7
        recorder.note(Ending(transaction, is_commit))
        clients.end(producer, is_commit=is_commit)
        recorder.note(Ended(transaction))
        if choose.random() < 0.5:
            bench.run_background()
            bench.checkpoint()
    clients.close()
    bench.abandon()
