"""The producer id and epoch under which a task writes a micro-batch, stored in the query's checkpoint.

    <checkpoint>/barnabas-sink/<task>/producer-<batch:010d>.json           {"producer_id": 4001, "query", "cluster"}
    <checkpoint>/barnabas-sink/<task>/partitions-<batch:010d>-<topic>.json {"partitions": 6}

A file applies from its micro-batch on, until a later file. A task (a Spark partition's number) has one producer id; the
epoch is the number of micro-batches since the file's. So every micro-batch has its own epoch, in which sequences
count its records from 0, and the broker refuses late requests of earlier ones. After 32,767 micro-batches a new id is
taken. A topic's partition count is stored because keys are placed by it: a replay must place them the same way.

A query started over in an old checkpoint (its offsets deleted, these files not) counts its micro-batches from 0 again,
and its records would be mistaken for stored ones. So a file names its query, and another query is refused. So is
another cluster, where the producer id is unknown or another producer's. Files of older versions name no cluster.

The files are written before the first record is sent and never change, so every replay finds them.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from barnabas.clients.producer.given_identity import ProducerIdentity
from barnabas.clients.producer.sequences import MAX_EPOCH
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.state_files import StateFiles

DIRECTORY: Final = "barnabas-sink"
TRANSACTIONS: Final = "transactions"
"""In that directory, for exactlyOnce=transactions: run_files.py."""

_NAME: Final = re.compile(r"(producer|partitions)-(\d{10,})(?:-(.+))?\.json")


class TaskIdentity:
    """The files of one task, for one micro-batch of `query` (Spark's query id, None for a batch write)."""

    def __init__(self, checkpoint: str, task: int, batch_id: int, query: str | None = None) -> None:
        self._checkpoint = checkpoint
        self._query = query
        self._files = StateFiles(f"{checkpoint.rstrip('/')}/{DIRECTORY}/{task:05d}")
        self._batch_id = batch_id
        self._latest: dict[tuple[str, str], int] = {}
        for name in self._files.names():
            match = _NAME.fullmatch(name)
            if match is not None and int(match[2]) <= batch_id:
                self._latest[match[1], match[3] or ""] = int(match[2])  # sorted: the latest one is kept

    @property
    def where(self) -> str:
        """The option and the directory, for errors."""
        return f"checkpointLocation {self._checkpoint}: its {DIRECTORY}"

    @property
    def needs_producer_id(self) -> bool:
        """Whether no producer id is stored, or its epochs are used up."""
        since = self._latest.get(("producer", ""))
        return since is None or self._batch_id - since > MAX_EPOCH

    def keep_producer_id(self, producer_id: int, cluster_id: str) -> None:
        """Store a producer id from this micro-batch on, unless another attempt stored one first.

        Raises OSError, PipelineError for a checkpoint that was written with transactions.
        """
        if TRANSACTIONS in StateFiles(f"{self._checkpoint.rstrip('/')}/{DIRECTORY}").directories():
            raise PipelineError(
                f"{self.where} was written with exactlyOnce=transactions: give that option, or stop the query after a "
                f"finished micro-batch and delete {self._checkpoint.rstrip('/')}/{DIRECTORY}"
            )
        self._create("producer", "", {"producer_id": producer_id, "query": self._query, "cluster": cluster_id})

    def producer(self) -> ProducerIdentity:
        """Return the stored id and this micro-batch's epoch. Raises OSError, PipelineError."""
        since = self._latest["producer", ""]
        kept = self._read("producer", since, "")
        query = kept.get("query", self._query)
        if query != self._query:
            raise PipelineError(
                f"{self.where} belongs to {name_of_query(query)}, this is {name_of_query(self._query)}, whose records "
                "would be mistaken for the other's: give each its own checkpoint, and start this one with an empty "
                "checkpoint"
            )
        producer_id = _number(kept, "producer_id", self._name("producer", since))
        return ProducerIdentity(producer_id, self._batch_id - since, str(kept.get("cluster", "")))

    def partitions(self, topic: str, now: int, *, has_begun: bool) -> int:
        """Return the number of partitions over which keys of `topic` are spread; `now` is its current number.

        `has_begun`: records of this micro-batch are stored, so the old number still applies. Raises OSError.
        """
        since = self._latest.get(("partitions", topic))
        if since is not None:
            before = _number(
                self._read("partitions", since, topic), "partitions", self._name("partitions", since, topic)
            )
            if before == now or has_begun or since == self._batch_id:
                return before
        name = self._name("partitions", self._batch_id, topic)
        return _number(self._create("partitions", topic, {"partitions": now}), "partitions", name)

    def _create(self, kind: str, topic: str, fields: dict[str, Any]) -> dict[str, Any]:
        name = self._name(kind, self._batch_id, topic)
        content = self._files.create(name, json.dumps(fields).encode())
        self._latest[kind, topic] = self._batch_id
        return _fields(content, name)

    def _read(self, kind: str, since: int, topic: str) -> dict[str, Any]:
        name = self._name(kind, since, topic)
        return _fields(self._files.read(name), name)

    def _name(self, kind: str, batch_id: int, topic: str = "") -> str:
        return f"{kind}-{batch_id:010d}{f'-{topic}' if topic else ''}.json"


def name_of_query(query: str | None) -> str:
    """Return words for a Spark query id; None is a batch write."""
    return "a batch write" if query is None else f"the streaming query {query}"


def _fields(content: bytes, name: str) -> dict[str, Any]:
    try:
        fields = json.loads(content)
    except ValueError as error:
        raise PipelineError(f"the checkpoint's file {DIRECTORY}/.../{name} cannot be read: {error}") from error
    if not isinstance(fields, dict):
        raise PipelineError(f"the checkpoint's file {DIRECTORY}/.../{name} cannot be read: it is not an object")
    return fields


def _number(fields: dict[str, Any], field: str, name: str) -> int:
    value = fields.get(field)
    if type(value) is not int or value < 0:
        raise PipelineError(f"the checkpoint's file {DIRECTORY}/.../{name} cannot be read: {field} is {value!r}")
    return value
