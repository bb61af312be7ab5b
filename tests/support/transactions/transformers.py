"""Transformer processes that are killed, and the check that their output has each input record exactly once.

transformation = Transformation(daemon, "confluent", seed=1, stack=stack)
transformation.run(kills=4)
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack
from datetime import UTC, datetime

from tests.support.daemon import REPOSITORY, Daemon
from tests.support.groups.committed import fetch
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.kafka.wire_producer import WireProducer
from tests.support.transactions.committed_reads import fetch_committed
from tests.support.transactions.transformer import SESSION_MS

SETTINGS = (
    "group.min.session.timeout.ms=500",
    f"group.consumer.session.timeout.ms={SESSION_MS * 2}",
    f"group.consumer.min.session.timeout.ms={SESSION_MS}",
    "group.consumer.heartbeat.interval.ms=200",
    "group.consumer.min.heartbeat.interval.ms=200",
    "group.initial.rebalance.delay.ms=0",
    "offsets.topic.num.partitions=2",
    "transaction.state.log.num.partitions=2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms=500",
)
"""Of a broker on which a killed process is missed soon."""

GROUP, INPUT, OUTPUT = "transformers", "input", "output"
PARTITIONS = 4
PROCESSES = 2
WAIT_S = 40.0
_POLL_S = 0.05
_EVENTS_SHOWN = 60
_DONE = re.compile(r"done (\d+)\n")


class _Events:
    """Times of faults and of the transformers' errors, for the message of a test that fails."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(self, event: str) -> None:
        """Append an event; any thread may."""
        self._lines.append(f"{datetime.now(UTC):%H:%M:%S.%f} {event}")

    def tail(self) -> str:
        """Return the last events."""
        return "\n".join(self._lines[-_EVENTS_SHOWN:])


class _Process:
    """One transformer; `done` counts the records of its transactions that were answered."""

    def __init__(
        self, library: str, bootstrap: str, transactional_id: str, news: threading.Condition, events: _Events
    ) -> None:
        self.transactional_id = transactional_id
        self.done = 0
        self._news = news
        self._events = events
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.support.transactions.transformer",
                *(library, bootstrap, GROUP, INPUT, OUTPUT, transactional_id),
            ],
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def kill(self) -> None:
        """Send SIGKILL, and wait for the end."""
        self.process.kill()
        self.process.wait(WAIT_S)
        self._reading.join(WAIT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            committed = _DONE.fullmatch(line)  # a killed process may leave a part of its last line
            if committed is None:
                self._events.add(f"{self.transactional_id}: {line.rstrip()}")
                continue
            with self._news:
                self.done += int(committed[1])
                self._news.notify_all()


class Transformation:
    """Transformers that share the partitions of one topic, and their faults at moments that `seed` determines."""

    def __init__(self, daemon: Daemon, library: str, *, seed: int, stack: ExitStack) -> None:
        self._daemon = daemon
        self._library = library
        self._random = random.Random(seed)
        self._news = threading.Condition()
        self._stack = stack
        self._events = _Events()
        self._produced: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        for topic in (INPUT, OUTPUT):
            daemon.create_topic(topic, partitions=PARTITIONS)
        self._processes = [self._start(number) for number in range(PROCESSES)]

    def run(self, *, faults: int, records: int = 40) -> None:
        """Produce `records` to each partition before every fault, and check the output at the end."""
        kinds = [self._kill_broker, self._kill_process, self._suspend_process]
        order = [kinds[number % len(kinds)] for number in range(faults)]
        self._random.shuffle(order)
        for fault in order:
            self._produce(records)
            self._await_progress(self._random.randrange(1, records))
            time.sleep(self._random.random() / 50)  # anywhere in a transaction
            fault()
        self._produce(records)
        self.check()

    def _kill_broker(self) -> None:
        self._events.add("the broker is killed")
        self._daemon.restart(clean=False)
        self._events.add("the broker runs again")

    def _kill_process(self) -> None:
        number = self._random.randrange(PROCESSES)
        self._events.add(f"transformer-{number} is killed")
        self._processes[number].kill()
        self._processes[number] = self._start(number)

    def _suspend_process(self) -> None:
        """Suspend one for longer than its session, so that the other one takes its partitions over."""
        chosen = self._random.choice(self._processes)
        self._events.add(f"{chosen.transactional_id} is suspended")
        chosen.process.send_signal(signal.SIGSTOP)
        time.sleep(2 * SESSION_MS / 1000)  # the time of the fault itself
        chosen.process.send_signal(signal.SIGCONT)
        self._events.add(f"{chosen.transactional_id} goes on")

    def check(self) -> None:
        """Wait until everything is transformed; assert that the output has each record once, and in order."""
        with KafkaWire(self._daemon.host, self._daemon.port) as wire:
            found: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
            offsets = [0] * PARTITIONS
            deadline = time.monotonic() + WAIT_S
            while any(len(output) < len(wanted) for output, wanted in zip(found, self._produced, strict=True)):
                assert time.monotonic() < deadline, f"records are missing\n{self._history()}"
                self._read_on(wire, found, offsets)
            for process in self._processes:
                process.kill()  # while none of their transactions is expected to be open
            for number in range(PROCESSES):
                assert WireProducer(wire, f"transformer-{number}").init() == 0  # ends one that is
            self._read_on(wire, found, offsets)
            for output, wanted in zip(found, self._produced, strict=True):
                counts = Counter(output)
                assert {value: count for value, count in counts.items() if count > 1} == {}, (
                    f"written twice\n{self._history()}"
                )
                assert output == wanted, self._history()
            stable = fetch(wire, GROUP, INPUT, tuple(range(PARTITIONS)), require_stable=True)
            assert [error for _, error, _ in stable.values()] == [0] * PARTITIONS

    def _read_on(self, wire: KafkaWire, found: list[list[bytes]], offsets: list[int]) -> None:
        """Append what was committed to the output since the last call."""
        for number, offset in enumerate(offsets):
            fetched = fetch_committed(wire, OUTPUT, number, offset)
            found[number] += [value for _, value in fetched.values]
            offsets[number] = fetched.next_offset
        time.sleep(_POLL_S)

    def _start(self, number: int) -> _Process:
        process = _Process(self._library, self._daemon.bootstrap, f"transformer-{number}", self._news, self._events)
        self._stack.callback(process.kill)
        return process

    def _produce(self, records: int) -> None:
        with KafkaWire(self._daemon.host, self._daemon.port) as wire:
            producer = WireProducer(wire, "source")
            assert producer.init() == 0
            for number, produced in enumerate(self._produced):
                values = [b"%d-%d" % (number, len(produced) + n) for n in range(records)]
                for start in range(0, records, 7):
                    assert producer.write(INPUT, number, *values[start : start + 7]) == 0
                produced += values
            assert producer.end(is_commit=True) == 0

    def _await_progress(self, records: int) -> None:
        """Wait until the transformers have committed that many more records."""
        with self._news:
            before = sum(each.done for each in self._processes)
            done = self._news.wait_for(lambda: sum(each.done for each in self._processes) >= before + records, WAIT_S)
        assert done, f"no progress\n{self._history()}"

    def _history(self) -> str:
        """Return faults, the transformers' errors and the end of the broker's log, with their times."""
        return f"{self._events.tail()}\n\n{self._daemon.log_tail()}"
