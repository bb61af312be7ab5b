"""Main loop of a driver process: reads one JSON request per line, and writes one JSON answer per line.

    {"op": "produce", "bootstrap": "127.0.0.1:9092", "topic": "t", "acks": "all", "codec": "zstd",
     "idempotence": true, "records": [{"partition": 0, "key": "aw==", "value": null, "headers": [["h", "dg=="]],
     "timestamp": 1700000000000}]}
        -> {"results": [{"offset": 0, "error": null}]}            error: Kafka's number, or the client's text
    {"op": "read", "topic", "partition", "offset" | "timestamp", "count"}
        -> {"records": [{"offset", "timestamp", "key", "value", "headers"}]}
    {"op": "offsets", "topic", "partition", "timestamp"}          -> {"earliest", "latest", "at"}
    {"op": "stream", "topic", "until": a file's path}             -> {"progress": n} repeatedly, then {"sent", "failed"}
    {"op": "create_topic" | "topics" | "describe_configs" | "alter_configs" | "create_partitions" | "delete_records" |
           "delete_topic" | "cluster", ...}                       -> see the features
    {"op": "version"}                                             -> {"version": "2.16.1"}

Transactions. `name` is one producer of several in a process:

    {"op": "txn_open", "name", "transactional_id"}                -> {} after InitProducerId
    {"op": "txn_send", "name", "topic", "partition", "values"}    -> {} when all are acknowledged; begins a transaction
    {"op": "txn_offsets", "name", "group", "topic", "partition", "offset"}
    {"op": "txn_end", "name", "commit": bool}
    {"op": "txn_close", "name"}
    {"op": "read_values", "topic", "partition", "committed": bool, "count"}
        -> {"values": [...]}: at least `count`, and those that arrive in the next READ_ON_S
    {"op": "transform", "topic", "output", "group", "transactional_id", "until", "protocol": "classic" | "consumer"}
        -> {"progress": n} after each transaction, then {"sent", "failed"}. Consumes `topic` in a group and writes the
        values to the same partitions of `output`, with the offsets, in transactions. After an error it closes producer
        and consumer and starts again, the producer first: its InitProducerId ends the transaction that may be open.

Bytes are base64, null is null. {"unsupported": reason} means that the client lacks the feature, {"error": text} that it
failed. Drivers in other languages use the same format.
"""

from __future__ import annotations

import base64
import json
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Request = Mapping[str, Any]
Answer = dict[str, Any]

PROGRESS_EVERY = 200
STREAM_LIMIT_S = 60.0
READ_ON_S = 0.5
TRANSFORM_SESSION_MS = 30_000
_PACE_S = 0.001
_RETRY_PAUSE_S = 0.2


class UnsupportedError(Exception):
    """The client lacks the feature."""


def unpack(text: str | None) -> bytes | None:
    """Decode base64, or null."""
    return None if text is None else base64.b64decode(text)


def pack(value: bytes | None) -> str | None:
    """Encode as base64, or null."""
    return None if value is None else base64.b64encode(bytes(value)).decode()


def packed_record(
    offset: int,
    timestamp: int,
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[str, bytes | None]],
) -> Answer:
    """Return a record as in an answer."""
    return {
        "offset": offset,
        "timestamp": timestamp,
        "key": pack(key),
        "value": pack(value),
        "headers": [[name, pack(content)] for name, content in headers],
    }


def unpacked_headers(record: Mapping[str, Any]) -> list[tuple[str, bytes | None]]:
    """Return the headers of a record in a request."""
    return [(name, unpack(content)) for name, content in record.get("headers") or []]


def send_arguments(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record in a request as arguments for `send`, whose signature kafka-python and aiokafka share."""
    return {
        "value": unpack(record["value"]),
        "key": unpack(record["key"]),
        "headers": unpacked_headers(record),
        "partition": record["partition"],
        "timestamp_ms": record["timestamp"],
    }


def say(answer: Answer) -> None:
    """Write one line."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


class Stream:
    """The numbers that a `stream` sends, one a millisecond, until its file exists. Reports progress."""

    def __init__(self, request: Request) -> None:
        self.sent = 0
        self.acked = 0
        self.failed: list[str] = []
        self._until = Path(request["until"])
        self._deadline = time.monotonic() + STREAM_LIMIT_S

    def goes_on(self) -> bool:
        """Wait for the time of the next record; return whether to send it."""
        if time.monotonic() > self._deadline or self._until.exists():
            return False
        time.sleep(_PACE_S)
        return True

    def next_value(self) -> bytes:
        """Return the next record's value."""
        self.sent += 1
        return b"%d" % (self.sent - 1)

    def ack(self, error: object = None) -> None:
        """Count one acknowledgement."""
        if error is not None:
            self.failed.append(str(error))
            return
        self.acked += 1
        if self.acked % PROGRESS_EVERY == 0:
            say({"progress": self.acked})

    def answer(self) -> Answer:
        """Return the final answer."""
        return {"sent": self.sent, "acked": self.acked, "failed": self.failed[:5]}


class Transform:
    """Progress of a `transform`, which runs until its file exists."""

    def __init__(self, request: Request) -> None:
        self.transformed = 0
        self.failed: list[str] = []
        self._until = Path(request["until"])
        self._deadline = time.monotonic() + STREAM_LIMIT_S

    def goes_on(self) -> bool:
        """Return whether to run another transaction."""
        return time.monotonic() < self._deadline and not self._until.exists()

    def committed(self, records: int) -> None:
        """Count the records of a committed transaction."""
        self.transformed += records
        say({"progress": self.transformed})

    def fail(self, error: BaseException) -> None:
        """Note the error after which the client starts again."""
        traceback.print_exc()
        self.failed.append(f"{type(error).__name__}: {error}")
        time.sleep(_RETRY_PAUSE_S)

    def answer(self) -> Answer:
        """Return the final answer."""
        return {"sent": self.transformed, "failed": self.failed[-5:]}


class Reading:
    """The values of a `read_values`."""

    def __init__(self, request: Request) -> None:
        self.values: list[str] = []
        self._count = request["count"]
        self._deadline = time.monotonic() + STREAM_LIMIT_S / 2
        self._end = 0.0 if self._count else time.monotonic() + READ_ON_S

    def goes_on(self) -> bool:
        """Return whether to read on."""
        if len(self.values) >= self._count and not self._end:
            self._end = time.monotonic() + READ_ON_S
        return time.monotonic() < (self._end or self._deadline)


def serve(operations: Mapping[str, Callable[[Request], Answer]]) -> None:
    """Answer requests until standard input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        operation = operations.get(request["op"])
        try:
            if operation is None:
                raise UnsupportedError("no such call in this client")
            answer = operation(request)
        except UnsupportedError as error:
            answer = {"unsupported": str(error)}
        except Exception as error:  # noqa: BLE001 - the test is told, and goes on to the next feature
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        say(answer)
