"""Decisions about runs, carried out by drivers that die at every step, against a coordinator in memory."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest

from barnabas.clients.errors import PreparedTransactionLostError
from barnabas.clients.producer.prepared import PreparedTransaction
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.sink.decisions import abort_open_runs, commit_run, recover
from barnabas.pipeline.sink.run_files import ABORT, Commit, TransactionFiles, WrittenBatch
from barnabas.pipeline.state_files import StateFiles
from barnabas.protocol.errors import ErrorCode

CLUSTER = "here"


class DriverDiedError(BaseException):
    """The driver is killed."""


class Coordinator:
    """What a transaction coordinator does with prepared transactions. `dies_at` counts down to the driver's death."""

    def __init__(self, cluster_id: str = CLUSTER) -> None:
        self.cluster_id = cluster_id
        self.epochs: dict[str, int] = {}
        self.open: set[str] = set()
        self.outcomes: dict[str, list[str]] = {}
        self.dies_at: int | None = None

    def prepare(self, transactional_id: str) -> PreparedTransaction:
        self.epochs[transactional_id] = self.epochs.get(transactional_id, -1) + 1
        self.open.add(transactional_id)
        return PreparedTransaction(transactional_id, 7, self.epochs[transactional_id])

    async def ensure_open(self, transactions: Sequence[PreparedTransaction]) -> None:
        for name, _, epoch in transactions:
            if name not in self.open or self.epochs[name] != epoch:
                raise PreparedTransactionLostError(name, ErrorCode.INVALID_TXN_STATE)

    async def commit(self, transaction: PreparedTransaction) -> None:
        self.step()
        name = transaction.transactional_id
        if self.outcomes.get(name) == ["commit"]:
            return
        if name not in self.open or self.epochs[name] != transaction.epoch:
            raise PreparedTransactionLostError(name, ErrorCode.PRODUCER_FENCED)
        self.end(name, "commit")

    async def abort(self, transactional_id: str) -> None:
        self.step()
        self.epochs[transactional_id] = self.epochs.get(transactional_id, -1) + 1
        if transactional_id in self.open:
            self.end(transactional_id, "abort")

    async def open_ids(self, pattern: str) -> list[str]:
        return sorted(self.open)

    def end(self, name: str, outcome: str) -> None:
        self.open.discard(name)
        self.outcomes.setdefault(name, []).append(outcome)
        self.step()

    def step(self) -> None:
        if self.dies_at is not None:
            self.dies_at -= 1
            if self.dies_at < 0:
                raise DriverDiedError


def begin(files: TransactionFiles, coordinator: Coordinator, run: str, *attempts: str) -> list[PreparedTransaction]:
    run_files = files.run(run)
    run_files.begin(coordinator.cluster_id)
    prepared = []
    for task, name in enumerate(attempts):
        run_files.register(task, name, name)
        prepared.append(coordinator.prepare(name))
    return prepared


def commit_of(batch: int, *transactions: PreparedTransaction) -> Commit:
    free = {task: each.transactional_id for task, each in enumerate(transactions)}
    return Commit(WrittenBatch(batch, "q", CLUSTER, free), transactions)


def state(tmp_path: Path) -> TransactionFiles:
    return TransactionFiles(str(tmp_path / "checkpoint"))


async def test_a_run_commits_the_decided_attempts_and_aborts_the_speculative_ones(tmp_path: Path) -> None:
    files, coordinator = state(tmp_path), Coordinator()
    one, two, _ = begin(files, coordinator, "r", "one", "two", "speculative")
    await commit_run(files, files.run("r"), commit_of(4, one, two), coordinator)
    assert coordinator.outcomes == {"one": ["commit"], "two": ["commit"], "speculative": ["abort"]}
    assert files.last_written() == WrittenBatch(4, "q", CLUSTER, {0: "one", 1: "two"})
    assert files.runs() == []
    three = begin(files, coordinator, "s", "three")
    await commit_run(files, files.run("s"), commit_of(5, *three), coordinator)
    assert files.last_written() == WrittenBatch(5, "q", CLUSTER, {0: "three"})
    assert len(list(tmp_path.rglob("written-*"))) == 1


async def test_an_undecided_run_is_aborted_by_the_next_driver_and_its_driver_can_commit_no_more(tmp_path: Path) -> None:
    files, coordinator = state(tmp_path), Coordinator()
    prepared = begin(files, coordinator, "r", "one", "two")
    files.run("r").decide(ABORT)  # the next driver has begun to recover
    with pytest.raises(PipelineError, match="another driver has taken over this query"):
        await commit_run(files, files.run("r"), commit_of(0, *prepared), coordinator)
    await recover(files, coordinator)
    assert coordinator.outcomes == {"one": ["abort"], "two": ["abort"]}
    assert files.last_written() is None
    assert files.runs() == []


@pytest.mark.parametrize("dies_at", range(7))
async def test_a_driver_that_dies_after_its_decision_is_finished_by_the_next_one(tmp_path: Path, dies_at: int) -> None:
    files, coordinator = state(tmp_path), Coordinator()
    one, two, _ = begin(files, coordinator, "r", "one", "two", "three")
    coordinator.dies_at = dies_at
    with pytest.raises(DriverDiedError) if dies_at < 6 else nullcontext():
        await commit_run(files, files.run("r"), commit_of(0, one, two), coordinator)
    coordinator.dies_at = None
    await recover(files, coordinator)
    assert coordinator.outcomes == {"one": ["commit"], "two": ["commit"], "three": ["abort"]}
    assert files.last_written() == WrittenBatch(0, "q", CLUSTER, {0: "one", 1: "two"})
    assert files.runs() == []


@pytest.mark.parametrize("decided", [True, False])
async def test_a_driver_may_die_at_any_file_it_touches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decided: bool
) -> None:
    """The first driver dies before its n-th change of a file, for every n; the second one finishes."""
    deaths = 0
    for number in itertools.count():
        files, coordinator = state(tmp_path / str(number)), Coordinator()
        prepared = begin(files, coordinator, "r", "one", "two")
        with monkeypatch.context() as patched:
            left = iter(range(number))
            for method in ("create", "remove", "remove_directory"):
                patched.setattr(StateFiles, method, _dying(getattr(StateFiles, method), left))
            try:
                if decided:
                    await commit_run(files, files.run("r"), commit_of(3, prepared[0]), coordinator)
                else:
                    await abort_open_runs(files, coordinator)
            except DriverDiedError:
                deaths += 1
            else:
                break
        has_decided = decided and number > 0
        await recover(files, coordinator)
        assert coordinator.outcomes["one"] == (["commit"] if has_decided else ["abort"])
        assert coordinator.outcomes["two"] == ["abort"]
        assert files.last_written() == (WrittenBatch(3, "q", CLUSTER, {0: "one"}) if has_decided else None)
        assert files.runs() == []
    assert deaths >= 5


async def test_an_abort_after_the_decision_leaves_it_to_the_next_driver(tmp_path: Path) -> None:
    files, coordinator = state(tmp_path), Coordinator()
    (one,) = begin(files, coordinator, "r", "one")
    assert files.run("r").decide(commit_of(0, one)) == commit_of(0, one)
    await abort_open_runs(files, coordinator)  # Spark calls abort() when commit() failed
    assert coordinator.outcomes == {}
    await recover(files, coordinator)
    assert coordinator.outcomes == {"one": ["commit"]}


async def test_an_attempt_that_comes_late_finds_its_run_closed_whenever_it_looks(tmp_path: Path) -> None:
    files, coordinator = state(tmp_path), Coordinator()
    run = files.run("r")
    run.begin(CLUSTER)
    assert run.is_open()
    run.decide(ABORT)
    assert not run.is_open()
    await recover(files, coordinator)
    run.register(0, "late", "late")
    coordinator.prepare("late")
    assert not run.is_open()
    await recover(files, coordinator)  # and the next driver fences what the attempt left
    assert coordinator.outcomes == {"late": ["abort"]}
    assert files.runs() == []


async def test_a_transaction_that_was_aborted_before_the_decision_keeps_the_run_undecided(tmp_path: Path) -> None:
    files, coordinator = state(tmp_path), Coordinator()
    one, two = begin(files, coordinator, "r", "one", "two")
    await coordinator.abort("one")
    with pytest.raises(PipelineError, match=r"transaction one cannot be committed .* start the query again"):
        await commit_run(files, files.run("r"), commit_of(0, one, two), coordinator)
    await abort_open_runs(files, coordinator)
    assert coordinator.outcomes == {"one": ["abort"], "two": ["abort"]}
    assert files.runs() == []


async def test_a_decided_transaction_that_was_aborted_by_others_is_a_fatal_error_every_time(tmp_path: Path) -> None:
    files, coordinator = state(tmp_path), Coordinator()
    one, two = begin(files, coordinator, "r", "one", "two")
    files.run("r").decide(commit_of(0, one, two))
    await coordinator.abort("one")
    for _ in range(2):
        with pytest.raises(PipelineError, match=r"transaction one cannot be committed any more.*rows of a micro-batch"):
            await recover(files, coordinator)
    assert coordinator.outcomes["two"] == ["commit"]


async def test_transactions_of_a_written_batch_are_not_ended_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, coordinator = state(tmp_path), Coordinator()
    (one,) = begin(files, coordinator, "r", "one")
    with monkeypatch.context() as patched:
        patched.setattr(StateFiles, "remove_directory", _dying(StateFiles.remove_directory, iter(())))
        with pytest.raises(DriverDiedError):
            await commit_run(files, files.run("r"), commit_of(0, one), coordinator)
    coordinator.outcomes.clear()  # the id has expired
    coordinator.epochs.clear()
    await recover(files, coordinator)
    assert coordinator.outcomes == {}
    assert files.runs() == []


async def test_runs_of_another_cluster_are_left_alone(tmp_path: Path) -> None:
    files, coordinator = state(tmp_path), Coordinator()
    prepared = begin(files, coordinator, "r", "one")
    with pytest.raises(PipelineError, match=r"unfinished transactions in cluster here, .* is cluster there"):
        await recover(files, Coordinator("there"))
    await recover(files, coordinator)
    assert coordinator.outcomes == {prepared[0].transactional_id: ["abort"]}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b'{"outcome": "commit"}',
        b'{"outcome": "commit", "batch": 0, "query": null, "cluster": "c", "free": {}, "transactions": [["a", 1]]}',
        b'{"outcome": "commit", "batch": "0", "query": null, "cluster": "c", "free": {}, "transactions": []}',
        b'{"outcome": "commit", "batch": 0, "query": 3, "cluster": "c", "free": {}, "transactions": []}',
        b'{"outcome": "commit", "batch": 0, "query": null, "free": {}, "transactions": []}',
        b'{"outcome": "commit", "batch": 0, "query": "q", "cluster": "c", "transactions": [], "free": {"x": "id"}}',
        b"\xff",
    ],
)
async def test_a_damaged_decision_is_named_and_nothing_is_ended(tmp_path: Path, content: bytes) -> None:
    files, coordinator = state(tmp_path), Coordinator()
    begin(files, coordinator, "r", "one")
    files.run("r").decide(ABORT)
    (file,) = tmp_path.rglob("outcome.json")
    file.write_bytes(content)
    with pytest.raises(PipelineError, match=r"run-r/outcome\.json cannot be read"):
        await recover(files, coordinator)
    assert coordinator.outcomes == {}


def test_the_decision_on_disk_has_everything_that_ending_needs(tmp_path: Path) -> None:
    files = state(tmp_path)
    files.run("r").decide(commit_of(12, PreparedTransaction("id", 4001, 3)))
    (file,) = tmp_path.rglob("outcome.json")
    assert json.loads(file.read_text()) == {
        "outcome": "commit",
        "batch": 12,
        "query": "q",
        "cluster": CLUSTER,
        "transactions": [["id", 4001, 3]],
        "free": {"0": "id"},
    }


async def test_many_transactions_are_ended_some_at_a_time(tmp_path: Path) -> None:
    class Slow(Coordinator):
        running = most = 0

        async def commit(self, transaction: PreparedTransaction) -> None:
            self.running += 1
            self.most = max(self.most, self.running)
            await asyncio.sleep(0)
            self.running -= 1
            await super().commit(transaction)

    files, coordinator = state(tmp_path), Slow()
    prepared = begin(files, coordinator, "r", *map(str, range(100)))
    await commit_run(files, files.run("r"), commit_of(0, *prepared), coordinator)
    assert 1 < coordinator.most <= 32
    assert len(coordinator.outcomes) == 100


def _dying(method: Callable[..., object], left: Iterator[int]) -> Callable[..., object]:
    def maybe(*args: object) -> object:
        if next(left, None) is None:
            raise DriverDiedError
        return method(*args)

    return maybe


async def test_ids_of_a_written_batch_are_reused_by_one_run_and_in_it_by_one_attempt(tmp_path: Path) -> None:
    files, coordinator = state(tmp_path), Coordinator()
    prepared = begin(files, coordinator, "r", "one", "two")
    assert files.take_free_ids("r") == {}
    await commit_run(files, files.run("r"), commit_of(0, *prepared), coordinator)
    assert files.take_free_ids("s") == {0: "one", 1: "two"}
    assert files.take_free_ids("s") == {0: "one", 1: "two"}
    assert files.take_free_ids("t") == {}
    run = files.run("s")
    run.begin(CLUSTER)
    assert run.claim(0, "first", "one")
    assert run.claim(0, "first", "one")
    assert not run.claim(0, "speculative", "one")
    assert run.attempts() == ["one"]
    await commit_run(files, run, commit_of(1), coordinator)
    assert files.take_free_ids("u") == {}
    assert not list(tmp_path.rglob("taken-0*0.json"))
