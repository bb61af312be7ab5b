"""Files of the sink's transactions in a checkpoint: the attempts of each run, and the driver's decisions.

    <checkpoint>/barnabas-sink/transactions/
        run-<run>/begun.json                     {"cluster"}: created by the driver before the tasks start
        run-<run>/attempt-<task>-<unique>.json   {"transactional_id", "attempt"}: created before the attempt's first
                                                 request; <unique> is "reused" for an id of an earlier micro-batch
        run-<run>/outcome.json                   {"outcome": "commit", "batch", "query", "cluster", "transactions",
                                                 "free"} or {"outcome": "abort"}: the decision, which never changes
        written-<batch>.json                     {"batch", "query", "cluster", "free"}: its transactions are committed
        taken-<batch>.json                       {"run"}: the run that reuses the ids in "free" of that micro-batch

A run is one execution of a batch or micro-batch; a micro-batch that is replayed has several. `outcome.json` is created
exclusively, so a driver that was replaced cannot commit what its successor has aborted. When a run is finished, its
directory is removed, `outcome.json` last. So a run is open exactly when `outcome.json` is missing
and, looked up after that, `begun.json` exists.

An attempt is registered first, then initializes its producer, then checks that its run is open. The driver creates
`outcome.json` first, then lists the attempts, and fences those that it does not commit. Whatever the order of these
steps, the attempt is fenced or stops by itself: no transaction stays open after its run.

The broker remembers a transactional id for days, so ids are reused: "free" has, by task, the ids of attempts that have
returned to the driver and send no more. One run takes them, and in it one attempt of each task claims its id. Both need
exclusive creation, so in an object store every attempt has a new id.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.clients.producer.prepared import PreparedTransaction
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.sink.identity import DIRECTORY, TRANSACTIONS
from barnabas.pipeline.state_files import StateFiles

_BEGUN: Final = "begun.json"
_OUTCOME: Final = "outcome.json"
_ATTEMPT: Final = "attempt-"
_RUN: Final = "run-"
_WRITTEN: Final = "written-"
_TAKEN: Final = "taken-"


@dataclass(frozen=True, slots=True)
class WrittenBatch:
    """A micro-batch whose rows are committed. `query` is Spark's query id, None for a batch write."""

    batch: int
    query: str | None
    cluster: str
    free: dict[int, str] = field(default_factory=dict)
    """By task, transactional ids that no attempt uses any more."""


@dataclass(frozen=True, slots=True)
class Commit:
    """The decision to commit these transactions, and no others, as the rows of `written`."""

    written: WrittenBatch
    transactions: tuple[PreparedTransaction, ...]


ABORT: Final = None
"""The decision to commit nothing of a run."""

Outcome = Commit | None


class RunFiles:
    """The files of one run."""

    def __init__(self, files: StateFiles, name: str) -> None:
        self._files = files
        self._name = name

    def begin(self, cluster: str) -> None:
        """Create `begun.json`. Raises OSError."""
        self._files.create(_BEGUN, json.dumps({"cluster": cluster}).encode())

    def cluster(self) -> str | None:
        """Return the cluster's id, None if the run is being removed. Raises OSError, PipelineError."""
        try:
            fields = _read(self._files, _BEGUN, f"{self._name}/{_BEGUN}")
        except FileNotFoundError:
            return None
        return _text(fields, f"{self._name}/{_BEGUN}", "cluster")

    def register(self, task: int, attempt: str, transactional_id: str) -> None:
        """Store an attempt's own id, before it sends its first request. Raises OSError."""
        self._register(task, attempt, attempt, transactional_id)

    def claim(self, task: int, attempt: str, transactional_id: str) -> bool:
        """Register the reused id of a task; False if another attempt has it. Raises OSError, PipelineError."""
        content = self._register(task, "reused", attempt, transactional_id)
        return _parsed(content, f"{self._name}/{_ATTEMPT}{task:05d}-reused.json").get("attempt") == attempt

    def _register(self, task: int, unique: str, attempt: str, transactional_id: str) -> bytes:
        content = json.dumps({"transactional_id": transactional_id, "attempt": attempt}).encode()
        return self._files.create(f"{_ATTEMPT}{task:05d}-{unique}.json", content)

    def attempts(self) -> list[str]:
        """Return the transactional ids of the registered attempts. Raises OSError, PipelineError."""
        return [
            _text(_read(self._files, name, f"{self._name}/{name}"), f"{self._name}/{name}", "transactional_id")
            for name in self._files.names()
            if name.startswith(_ATTEMPT)
        ]

    def is_open(self) -> bool:
        """Whether the run has begun and is not decided. Raises OSError."""
        return not self._files.exists(_OUTCOME) and self._files.exists(_BEGUN)

    def decide(self, outcome: Outcome) -> Outcome:
        """Store the decision unless there is one, and return the stored one. Raises OSError, PipelineError."""
        content = self._files.create(_OUTCOME, json.dumps(_outcome_fields(outcome)).encode())
        return _outcome(_parsed(content, f"{self._name}/{_OUTCOME}"), f"{self._name}/{_OUTCOME}")

    def remove(self) -> None:
        """Delete the files of a finished run. Raises OSError."""
        for name in self._files.names():
            if name != _OUTCOME:
                self._files.remove(name)
        self._files.remove_directory()


class TransactionFiles:
    """All runs of one checkpoint. `checkpoint` is a path or URI."""

    def __init__(self, checkpoint: str) -> None:
        self._sink = f"{checkpoint.rstrip('/')}/{DIRECTORY}"
        self.location = f"{self._sink}/{TRANSACTIONS}"
        self._files = StateFiles(self.location)

    def ensure_no_sequences(self) -> None:
        """Raise PipelineError if the checkpoint was written with exactlyOnce=sequences; and OSError."""
        if set(StateFiles(self._sink).directories()) - {TRANSACTIONS}:
            raise PipelineError(
                f"{self._sink} was written with exactlyOnce=sequences, the default: a micro-batch that is written in "
                "part would be written again; keep that setting, or stop the query after a finished micro-batch and "
                f"delete {self._sink}"
            )

    def run(self, run: str) -> RunFiles:
        """Return the files of a run, which need not exist."""
        name = f"{_RUN}{run}"
        return RunFiles(self._files.within(name), name)

    def runs(self) -> list[str]:
        """Return the runs that are not removed. Raises OSError."""
        return [name.removeprefix(_RUN) for name in self._files.directories() if name.startswith(_RUN)]

    def last_written(self) -> WrittenBatch | None:
        """Return the latest micro-batch whose rows are committed. Raises OSError, PipelineError."""
        names = self._written_names()
        if not names:
            return None
        return _written(_read(self._files, names[-1], names[-1]), names[-1])

    def take_free_ids(self, run: str) -> dict[int, str]:
        """Return the ids that this run may reuse, by task, and give them to no other run; in an object store none.

        Raises OSError, PipelineError.
        """
        written = self.last_written()
        if written is None or not written.free or not self._files.is_exclusive:
            return {}
        name = f"{_TAKEN}{written.batch:010d}.json"
        taken = _parsed(self._files.create(name, json.dumps({"run": run}).encode()), name)
        return written.free if taken.get("run") == run else {}

    def keep_written(self, written: WrittenBatch) -> None:
        """Store that a micro-batch is committed, and delete the files of earlier ones. Raises OSError."""
        name = f"{_WRITTEN}{written.batch:010d}.json"
        self._files.create(name, json.dumps(_written_fields(written)).encode())
        for other in self._files.names():
            number = other.removesuffix(".json").removeprefix(_WRITTEN).removeprefix(_TAKEN)
            if number.isdigit() and int(number) < written.batch:
                self._files.remove(other)

    def _written_names(self) -> list[str]:
        return [name for name in self._files.names() if name.startswith(_WRITTEN)]


def _written_fields(written: WrittenBatch) -> dict[str, Any]:
    return {"batch": written.batch, "query": written.query, "cluster": written.cluster, "free": written.free}


def _outcome_fields(outcome: Outcome) -> dict[str, Any]:
    if outcome is None:
        return {"outcome": "abort"}
    return {"outcome": "commit", **_written_fields(outcome.written), "transactions": outcome.transactions}


def _read(files: StateFiles, name: str, path: str) -> dict[str, Any]:
    return _parsed(files.read(name), path)


def _parsed(content: bytes, path: str) -> dict[str, Any]:
    try:
        fields = json.loads(content)
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(fields, dict):
        raise _damaged(path, "it is not an object")
    return fields


def _outcome(fields: dict[str, Any], path: str) -> Outcome:
    kind = fields.get("outcome")
    if kind == "abort":
        return ABORT
    transactions = fields.get("transactions")
    if kind != "commit" or not isinstance(transactions, list):
        raise _damaged(path, "it has no decision")
    return Commit(_written(fields, path), tuple(_transaction(each, path) for each in transactions))


def _written(fields: dict[str, Any], path: str) -> WrittenBatch:
    batch, query = fields.get("batch"), fields.get("query")
    if type(batch) is not int or batch < 0:
        raise _damaged(path, f"batch is {batch!r}")
    if not (query is None or isinstance(query, str)):
        raise _damaged(path, f"query is {query!r}")
    return WrittenBatch(batch, query, _text(fields, path, "cluster"), _free(fields.get("free"), path))


def _free(value: object, path: str) -> dict[int, str]:
    if not isinstance(value, dict) or not all(task.isdigit() and isinstance(each, str) for task, each in value.items()):
        raise _damaged(path, f"free is {value!r}")
    return {int(task): each for task, each in value.items()}


def _transaction(value: object, path: str) -> PreparedTransaction:
    match value:
        case [str(transactional_id), int(producer_id), int(epoch)]:
            return PreparedTransaction(transactional_id, producer_id, epoch)
    raise _damaged(path, f"a transaction is {value!r}")


def _text(fields: dict[str, Any], path: str, name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise _damaged(path, f"{name} is {value!r}")
    return value


def _damaged(path: str, reason: str) -> PipelineError:
    return PipelineError(f"the checkpoint's file {DIRECTORY}/{TRANSACTIONS}/{path} cannot be read: {reason}")
