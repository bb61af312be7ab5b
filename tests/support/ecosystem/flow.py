"""Software that carries records into a topic, or from one topic into another, while the broker is killed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import Producer

from tests.support.daemon import Daemon
from tests.support.ecosystem.exchange import PARTITIONS, RECORDS, WAIT_S, restart, values, wait_for
from tests.support.program import Program
from tests.support.storage.committed_records import committed_records

INPUT = "input"
OUTPUT = "output"
_PACE_S = 0.002


class Feed:
    """Passes numbered values to `send` on a thread, slowly, so that the software is at work when the broker is killed.

    The test sets `arrived`, how many came through: at most a quarter of all values is under way, however slowly the
    software starts. As a context manager it has passed all of them at the end.
    """

    def __init__(self, send: Callable[[str], None], total: int = RECORDS) -> None:
        self.arrived = 0
        self._send = send
        self._total = total
        self._failed = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def running(self) -> bool:
        """Whether there are values to come."""
        return self._thread.is_alive()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self._failed.set()
        self.arrived = self._total
        self._thread.join(WAIT_S)
        assert error is not None or not self._thread.is_alive(), "not all values were taken"
        if error is None and self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            for number, value in enumerate(values(self._total)):
                while number - self.arrived > self._total // 4:
                    if self._failed.wait(_PACE_S):
                        return
                self._send(value)
                if self._failed.wait(_PACE_S):
                    return
        except Exception as error:  # noqa: BLE001 - raised again at the end of the context
            self._error = error


def process_through_kills(
    daemon: Daemon, program: Callable[[str, str, str], Program], *, total: int = RECORDS, partitions: int = PARTITIONS
) -> None:
    """Run a program that writes each value of a topic to another one, in capitals, while the broker is killed twice.

    `program` gets the bootstrap address and both topics. The second time it is killed, too. Asserts that nothing is
    missing in either topic: a record that the broker lost may have been read before the kill.
    """
    daemon.create_topic(INPUT, partitions=partitions)
    daemon.create_topic(OUTPUT, partitions=partitions)
    producer = Producer({"bootstrap.servers": daemon.bootstrap, "reconnect.backoff.max.ms": 200})

    def send(value: str) -> None:
        producer.produce(INPUT, value, key=value)
        producer.poll(0)

    with program(daemon.bootstrap, INPUT, OUTPUT) as running:
        carry_through_kills(daemon, running, send, partitions=partitions, total=total, expected=str.upper)
    assert producer.flush(WAIT_S) == 0
    assert not set(values(total)) - stored(daemon.data_directory, INPUT, partitions)


def carry_through_kills(
    daemon: Daemon,
    program: Program,
    send: Callable[[str], None],
    *,
    total: int = RECORDS,
    partitions: int = PARTITIONS,
    expected: Callable[[str], str] = str,
    kills_program: bool = True,
    log_directory: Path | None = None,
) -> None:
    """Feed a running program by `send` while the broker is killed twice, the second time together with the program.

    Asserts that the output topic gets what `expected` makes of each value: the broker's, or that in `log_directory`.
    """
    wanted = {expected(value) for value in values(total)}
    directory = log_directory or daemon.data_directory

    with Feed(send, total) as feed:

        def arrived() -> int:
            feed.arrived = len(wanted & stored(directory, OUTPUT, partitions))
            return feed.arrived

        for killed in range(2):
            wait_for(arrived, total // 6 * (killed + 1), "values have arrived")
            assert feed.running, "everything was sent before the broker was killed"
            kills = killed == 1 and kills_program
            if kills:
                program.kill()
            restart(daemon, OUTPUT, partitions)
            if kills:
                program.start()
    wait_for(arrived, total, "values have arrived")


def append_to(path: Path) -> Callable[[str], None]:
    """Return a function that appends a line to the file."""
    path.touch()

    def append(line: str) -> None:
        with path.open("a") as lines:
            lines.write(f"{line}\n")

    return append


def stored(log_directory: Path, topic: str, partitions: int = PARTITIONS) -> set[str]:
    """Return the values in a topic."""
    return {
        (record.value or b"").decode()
        for partition in range(partitions)
        for record in committed_records(log_directory, topic, partition)
    }
