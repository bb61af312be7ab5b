"""Concurrent transfers between accounts, each a transaction over several partitions; none may be seen in part.

    bank = Bank(seed=1)
    bank.create(host, port)
    with bank.opened():                    # tellers and a reader, threads, until the block ends or `close`
        bank.address = host, port          # None while the broker is down
        bank.await_transfers(100)
    bank.check(host, port)

A transfer writes one record for the debited account and one for the credited account, and commits the teller's transfer
number as a group's offset. Tellers abort some transfers themselves. Where a connection breaks or an answer is an error,
the outcome is unknown until the teller initializes its transactional id again.

`check` waits until no transaction is open, then asserts:

    atomic       of every transfer both records are visible to read_committed readers, exactly once, or none
    durable      a transfer whose commit was answered is visible; one whose abort was answered is not
    stable       what a reader saw while tellers worked and brokers crashed is what the log contains at the end
    in step      a teller's committed offset is the number of its last visible transfer
    once         a partition has at most one marker per transaction, and all markers of a transaction agree
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple, Self

from barnabas.protocol.records.end_marker import decode_end_marker
from barnabas.protocol.records.reader import read_records
from tests.support.kafka.kafka_wire import KafkaWire, schema
from tests.support.kafka.two_brokers import Topic, create_topics
from tests.support.kafka.wire_producer import WireProducer, find_coordinator
from tests.support.transactions.committed_reads import FetchedPartition, end_offset, fetch_committed

TOPIC = "accounts"
PARTITIONS = 4
ACCOUNTS = 16
TELLERS = 3
COMMITTED, ABORTED, UNKNOWN = "committed", "aborted", "unknown"
ABORT_SHARE = 0.2
WAIT_S = 30.0
ANSWER_WAIT_S = 3.0
"""How long a teller repeats a request before the transfer's outcome counts as unknown."""

Seen = dict[tuple[int, int], bytes]
"""Record values by partition and offset."""


class Transfer(NamedTuple):
    """One transfer as drawn; its records carry the same fields."""

    teller: int
    number: int
    debited: int
    credited: int
    amount: int

    @property
    def name(self) -> str:
        return f"{self.teller}-{self.number}"

    def value(self, account: int) -> bytes:
        """Return the record of one of its two accounts."""
        amount = -self.amount if account == self.debited else self.amount
        return json.dumps({"transfer": self.name, "account": account, "amount": amount}).encode()


class Bank:
    """Tellers, a reader, and their notes. `address` is where the broker listens, None while it is down."""

    def __init__(
        self, *, seed: int, level: int = 2, tellers: int = TELLERS, answer_wait_s: float = ANSWER_WAIT_S
    ) -> None:
        self.level = level
        self.answer_wait_s = answer_wait_s
        self.refusals: list[int] = []
        """Error codes after which a teller aborted, or gave up a transfer."""
        self.address: tuple[str, int] | None = None
        self.transfers: dict[str, Transfer] = {}
        self.outcomes: dict[str, str] = {}
        self.seen: Seen = {}
        self.closed = threading.Event()
        self._tellers = [_Teller(self, number, random.Random(f"{seed}-{number}")) for number in range(tellers)]
        self._reader = _Reader(self)
        self._running: list[Future[None]] = []

    def create(self, host: str, port: int, **configs: str) -> None:
        """Create the topic and the coordinators' topics. `configs` are the topic's, with `_` for `.`."""
        with KafkaWire(host, port) as wire:
            named = {name.replace("_", "."): value for name, value in configs.items()}
            create_topics(wire, {TOPIC: Topic(PARTITIONS, named)})
            for teller in self._tellers:
                assert find_coordinator(wire, teller.group, is_group=True) == 0
                assert find_coordinator(wire, teller.transactional_id) == 0

    @contextmanager
    def opened(self) -> Iterator[Self]:
        """Run tellers and reader until the block ends; raises their failures."""
        jobs: list[_Teller | _Reader] = [*self._tellers, self._reader]
        with ThreadPoolExecutor(len(jobs)) as threads:
            self._running = [threads.submit(job.run) for job in jobs]
            try:
                yield self
            finally:
                self.closed.set()
        self.close()

    def close(self) -> None:
        """End the threads; raises their failures. A request under way is finished first."""
        self.closed.set()
        for each in self._running:
            each.result(WAIT_S)

    def count(self, outcome: str) -> int:
        """Return the number of transfers with this outcome."""
        return list(self.outcomes.values()).count(outcome)

    def await_transfers(self, count: int) -> None:
        """Wait until `count` more transfers are committed."""
        goal = self.count(COMMITTED) + count
        self._await(lambda: self.count(COMMITTED) >= goal, f"{count} more transfers")

    def await_refusals(self, count: int) -> None:
        """Wait until `count` more requests are refused."""
        goal = len(self.refusals) + count
        self._await(lambda: len(self.refusals) >= goal, f"{count} more refusals")

    def check(self, host: str, port: int) -> None:
        """Assert everything in this module's docstring. The tellers must have ended."""
        with KafkaWire(host, port) as wire:
            for teller in self._tellers:  # ends what a crash left open
                assert WireProducer(wire, teller.transactional_id, level=self.level).init() == 0
            _await_stable(wire)
            read = [fetch_committed(wire, TOPIC, partition, 0) for partition in range(PARTITIONS)]
            final = {(each.partition, offset): value for each in read for offset, value in each.values}
            missing = {place: value for place, value in self.seen.items() if final.get(place) != value}
            assert not missing, f"seen by a reader, and undone: {missing}"
            self._check_transfers(final)
            for teller in self._tellers:
                assert _committed_offset(wire, teller.group) == self._last_visible(teller.number, final)
            self._check_markers(read)

    def _await(self, is_done: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + WAIT_S
        while not is_done():
            for each in self._running:
                if each.done():
                    each.result()
            assert time.monotonic() < deadline, f"no {what} in {WAIT_S} s; refusals: {self.refusals[-10:]}"
            time.sleep(0.01)  # polling threads with a deadline

    def _check_transfers(self, final: Seen) -> None:
        found: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for value in final.values():
            record = json.loads(value)
            found[record["transfer"]].append((record["account"], record["amount"]))
        for name, halves in found.items():
            transfer = self.transfers[name]
            expected = [(transfer.debited, -transfer.amount), (transfer.credited, transfer.amount)]
            assert sorted(halves) == sorted(expected), f"transfer {name} is partial or repeated: {halves}"
        for name, outcome in self.outcomes.items():
            if outcome == COMMITTED:
                assert name in found, f"transfer {name} was committed and is not visible"
            elif outcome == ABORTED:
                assert name not in found, f"transfer {name} was aborted and is visible"
        balances: Counter[int] = Counter()
        for halves in found.values():
            for account, amount in halves:
                balances[account] += amount
        assert sum(balances.values()) == 0

    def _last_visible(self, teller: int, final: Seen) -> int:
        visible = (self.transfers[json.loads(value)["transfer"]] for value in final.values())
        return max((each.number for each in visible if each.teller == teller), default=-1)

    def _check_markers(self, read: list[FetchedPartition]) -> None:
        outcomes: dict[tuple[int, int], bool] = {}
        for partition in read:
            counts: Counter[tuple[int, int]] = Counter()
            for batch in partition.markers:
                (record,) = read_records(batch)
                end = batch.producer_id, batch.producer_epoch
                counts[end] += 1
                is_commit = decode_end_marker(record.key, record.value).is_commit
                if self.level == 2:  # before, all transactions of an epoch have the same marker epoch
                    assert counts[end] == 1, f"partition {partition.partition}: two markers of {end}"
                    assert outcomes.setdefault(end, is_commit) == is_commit, f"{end} is committed and aborted"


class _Teller:
    """Transfers money until the bank closes, over new connections when the broker is gone."""

    def __init__(self, bank: Bank, number: int, draw: random.Random) -> None:
        self.number = number
        self.transactional_id = f"teller-{number}"
        self.group = f"tellers-{number}"
        self._bank = bank
        self._draw = draw
        self._transfers = 0

    def run(self) -> None:
        """Make transfers until the bank closes."""
        while not self._bank.closed.is_set():
            address = self._bank.address
            if address is not None:
                try:
                    with KafkaWire(*address) as wire:
                        self._work(wire)
                except OSError:
                    pass  # the broker is gone; this thread may see it before the test does
            self._bank.closed.wait(0.005)

    def _work(self, wire: KafkaWire) -> None:
        producer = WireProducer(wire, self.transactional_id, level=self._bank.level, wait_s=self._bank.answer_wait_s)
        error = producer.init()
        if error:
            self._bank.refusals.append(error)
        is_usable = error == 0
        while is_usable and not self._bank.closed.is_set():
            is_usable = self._transfer(producer)

    def _transfer(self, producer: WireProducer) -> bool:
        """Make one transfer; return whether the producer can go on without a new epoch."""
        self._transfers += 1
        debited, credited = self._draw.sample(range(ACCOUNTS), 2)
        transfer = Transfer(self.number, self._transfers, debited, credited, self._draw.randrange(1, 100))
        self._bank.transfers[transfer.name] = transfer
        outcomes = self._bank.outcomes
        outcomes[transfer.name] = UNKNOWN
        refused = self._write(producer, transfer)
        is_commit = not refused and self._draw.random() >= ABORT_SHARE
        error = producer.end(is_commit=is_commit)
        if error == 0:
            outcomes[transfer.name] = COMMITTED if is_commit else ABORTED
        self._bank.refusals.extend(code for code in (refused, error) if code)
        return error == 0

    def _write(self, producer: WireProducer, transfer: Transfer) -> int:
        values: dict[tuple[str, int], tuple[bytes, ...]] = {}
        for account in (transfer.debited, transfer.credited):
            place = TOPIC, account % PARTITIONS
            values[place] = (*values.get(place, ()), transfer.value(account))
        return producer.write_many(values) or producer.commit_offsets(self.group, TOPIC, {0: transfer.number})


class _Reader:
    """Follows all partitions as a read_committed consumer, and keeps what it saw."""

    def __init__(self, bank: Bank) -> None:
        self._bank = bank
        self._positions = dict.fromkeys(range(PARTITIONS), 0)

    def run(self) -> None:
        """Read until the bank closes."""
        while not self._bank.closed.is_set():
            address = self._bank.address
            if address is not None:
                try:
                    with KafkaWire(*address) as wire:
                        self._follow(wire)
                except OSError:
                    pass  # the broker is gone, or a partition is offline; the test restores it
            self._bank.closed.wait(0.005)

    def _follow(self, wire: KafkaWire) -> None:
        while not self._bank.closed.is_set():
            for partition, position in self._positions.items():
                read = fetch_committed(wire, TOPIC, partition, position, wait_s=0)
                for offset, value in read.values:
                    self._bank.seen[partition, offset] = value
                self._positions[partition] = read.next_offset
            self._bank.closed.wait(0.002)


def _await_stable(wire: KafkaWire) -> None:
    """Wait until no partition has an open transaction."""
    deadline = time.monotonic() + WAIT_S
    for partition in range(PARTITIONS):
        while (ends := [end_offset(wire, TOPIC, partition, committed=each) for each in (True, False)])[0] != ends[1]:
            assert time.monotonic() < deadline, f"{TOPIC}-{partition}: last stable offset {ends[0]}, end {ends[1]}"
            time.sleep(0.02)  # polling another process with a deadline


def _committed_offset(wire: KafkaWire, group: str) -> int:
    """Return the group's offset in partition 0, once no transaction has a pending one."""
    kio = schema("offset_fetch", 7, "request")
    topics = (kio.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=(0,)),)
    answer = wire.call("offset_fetch", 7, group_id=group, topics=topics, require_stable=True)
    (partition,) = answer.topics[0].partitions
    assert answer.error_code == 0
    assert partition.error_code == 0
    return int(partition.committed_offset)
