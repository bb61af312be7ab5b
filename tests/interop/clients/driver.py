"""Driver of one client: a program that answers JSON lines with JSON lines, started once for many requests."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from barnabas.protocol.records import Record
from tests.interop.clients.python.loop import pack, unpack
from tests.support.daemon import REPOSITORY

ANSWER_TIMEOUT_S = 70.0
_TAIL_CHARACTERS = 1500


class Unsupported(Exception):
    """The client lacks the feature, which counts neither as a success nor as a failure of the broker."""


class DriverError(AssertionError):
    """The client failed; the message is the client's."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limitations of a client, which tests take into account."""

    sets_timestamps: bool = True
    empty_is_null: bool = False
    needs_key_or_value: bool = False
    headers_it_cannot_set: frozenset[str] = field(default_factory=frozenset)
    assignors: frozenset[str] = frozenset(["range", "cooperative-sticky"])
    """Names of Kafka's assignors by which the client can share a group with other clients; `consumer` is KIP-848."""
    has_static_members: bool = True
    drops_a_record_when_stopped: bool = False
    """Whether at SIGTERM it commits a record that it has received and not printed."""
    tries_in_a_group: int = 1
    """Number of attempts at a group feature. kafka-python needs two: docs/client-quirks.md."""


class Driver:
    """The running driver program of one client."""

    def __init__(self, command: Sequence[str], directory: Path, limits: Limits) -> None:
        self.limits = limits
        self.bootstrap = ""
        self.directory = directory
        self._log_path = directory / "driver.log"
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read_lines, daemon=True)
        self._reader.start()

    def close(self) -> None:
        """Close the program's input, which ends it; kill it if it does not end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(30)
        self._reader.join(30)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def kill(self) -> None:
        """Send SIGKILL to the program."""
        self._process.kill()
        self._process.wait(30)

    def call(self, operation: str, **fields: Any) -> dict[str, Any]:
        """Return the answer. Raises Unsupported or DriverError."""
        self._send(operation, **fields)
        return self._checked(self._receive())

    def version(self) -> str:
        """Return the client's version."""
        return str(self.call("version")["version"])

    def produce(self, topic: str, records: Sequence[Record], *, partition: int = 0, **settings: Any) -> None:
        """Produce the records, and assert that each of them succeeds."""
        results = self._produce(topic, records, partition, settings)
        errors = [result["error"] for result in results if result["error"] is not None]
        assert not errors, f"{len(errors)} of {len(records)} records refused: {errors[:3]}"

    def produce_one(self, topic: str, record: Record) -> int | str | None:
        """Produce one record and return the error: Kafka's number, or the client's text."""
        (result,) = self._produce(topic, [record], 0, {})
        error: int | str | None = result["error"]
        return error

    def read(
        self, topic: str, *, partition: int = 0, count: int, offset: int | None = None, timestamp: int | None = None
    ) -> list[Record]:
        """Read `count` records from an offset, a timestamp, or the beginning."""
        answer = self.call("read", topic=topic, partition=partition, count=count, offset=offset, timestamp=timestamp)
        return [
            Record(
                found["offset"],
                found["timestamp"],
                unpack(found["key"]),
                unpack(found["value"]),
                tuple((name, unpack(content)) for name, content in found["headers"]),
            )
            for found in answer["records"]
        ]

    def offsets(self, topic: str, timestamp: int) -> tuple[int, int, int]:
        """Return the earliest offset, the latest offset, and that of a timestamp, of partition 0."""
        answer = self.call("offsets", topic=topic, partition=0, timestamp=timestamp)
        return answer["earliest"], answer["latest"], answer["at"]

    @contextmanager
    def stream(self, topic: str) -> Iterator[Stream]:
        """Produce numbers as values, one a millisecond, to partition 0, while the block runs."""
        stream = self._start("stream", topic)
        try:
            yield stream
        finally:
            stream.finish()

    def transform(self, topic: str, **names: str) -> Stream:
        """Consume the topic, and produce its values and the offsets in transactions, until `finish` is called."""
        return self._start("transform", topic, **names)

    def _start(self, operation: str, topic: str, **fields: str) -> Stream:
        until = self.directory / f"{topic}.until"
        until.unlink(missing_ok=True)
        self._send(operation, topic=topic, until=str(until), **fields)
        return Stream(self, until)

    def _produce(
        self, topic: str, records: Sequence[Record], partition: int, settings: dict[str, Any]
    ) -> list[dict[str, Any]]:
        fields = {"acks": "all", "codec": "none", "idempotence": False, **settings}
        listed = [
            {
                "partition": partition,
                "key": pack(record.key),
                "value": pack(record.value),
                "timestamp": record.timestamp,
                "headers": [[name, pack(content)] for name, content in record.headers],
            }
            for record in records
        ]
        results: list[dict[str, Any]] = self.call("produce", topic=topic, records=listed, **fields)["results"]
        assert len(results) == len(records)
        return results

    def _send(self, operation: str, **fields: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"op": operation, "bootstrap": self.bootstrap, **fields}) + "\n")
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=ANSWER_TIMEOUT_S)
        except queue.Empty:
            raise DriverError(f"no answer within {ANSWER_TIMEOUT_S:.0f} s\n{self._tail()}") from None
        if line is None:
            raise DriverError(f"the driver has ended\n{self._tail()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _checked(self, answer: dict[str, Any]) -> dict[str, Any]:
        if "unsupported" in answer:
            raise Unsupported(answer["unsupported"])
        if "error" in answer:
            raise DriverError(f"{answer['error']}\n{self._tail()}")
        return answer

    def _read_lines(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _tail(self) -> str:
        return f"--- the client's log\n{self._log_path.read_text(errors='replace')[-_TAIL_CHARACTERS:]}"


class Stream:
    """A running producer or transformer; `result` is set when it has finished."""

    def __init__(self, driver: Driver, until: Path) -> None:
        self._driver = driver
        self._until = until
        self.result: dict[str, Any] = {}
        self.acked = 0
        """Number of records that were acknowledged or committed by the last progress."""

    def wait_for_progress(self) -> None:
        """Wait until more records have been acknowledged or committed."""
        self._take(self._driver._receive())
        assert not self.result, f"the stream ended before it was to: {self.result}"

    def wait_for_end(self) -> None:
        """Wait until it has ended of itself."""
        while not self.result:
            self._take(self._driver._receive())

    def finish(self) -> None:
        """Make it stop, and wait for its end."""
        self._until.touch()
        self.wait_for_end()

    def _take(self, answer: dict[str, Any]) -> None:
        if "progress" in answer:
            self.acked = answer["progress"]
        else:
            self.result = self._driver._checked(answer)
