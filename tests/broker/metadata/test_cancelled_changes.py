"""Changes of the metadata: callers that are cancelled, as the tasks of mirrors are before a planned switch; turns."""

from __future__ import annotations

import asyncio
import gc
import threading
from types import SimpleNamespace
from typing import Any

import pytest

import barnabas.broker.metadata_changes as metadata_changes
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata_changes import MetadataChanges
from barnabas.protocol.errors import BrokerError, ErrorCode

TIMEOUT_S = 30


class Parts:
    """The store, the committer and the applier of one MetadataChanges; a commit waits for `may_commit`."""

    def __init__(self) -> None:
        self.image = MetadataImage()
        self.failure: str | None = None
        self.error: Exception | None = None
        self.node_id = 1
        self.has_begun, self.may_commit = threading.Event(), threading.Event()
        self.applied: list[MetadataImage] = []
        self.replication = SimpleNamespace(metadata_replicated=self._replicated)

    def commit(self, records: object) -> MetadataImage:
        self.has_begun.set()
        assert self.may_commit.wait(TIMEOUT_S)
        if self.error is not None:
            raise self.error
        self.image = MetadataImage(end_offset=1)
        return self.image

    async def apply(self, before: object, after: MetadataImage, *_: object, **__: object) -> dict[str, object]:
        await asyncio.sleep(0)
        self.applied.append(after)
        return {}

    async def _replicated(self, end_offset: int) -> None:
        """Nothing to wait for."""


async def test_a_change_is_applied_although_its_caller_was_cancelled_during_the_commit() -> None:
    parts: Any = Parts()
    changes = MetadataChanges(parts, parts, parts, parts, lambda: None)
    caller = asyncio.ensure_future(changes.take_producer_id_block())
    assert await asyncio.to_thread(parts.has_begun.wait, TIMEOUT_S)
    caller.cancel()
    await asyncio.sleep(0)
    caller.cancel()  # also twice
    parts.may_commit.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert parts.applied == [parts.image]


@pytest.mark.parametrize("error", [BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full"), ValueError("a bug")])
async def test_a_change_that_fails_after_its_caller_was_cancelled_is_logged(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    unhandled: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    parts: Any = Parts()
    parts.error = error
    changes = MetadataChanges(parts, parts, parts, parts, lambda: None)
    caller = asyncio.ensure_future(changes.take_producer_id_block())
    assert await asyncio.to_thread(parts.has_begun.wait, TIMEOUT_S)
    caller.cancel()
    await asyncio.sleep(0)
    parts.may_commit.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    del caller
    gc.collect()
    assert unhandled == []
    (line,) = [each for each in caplog.records if "nobody waits for its answer" in each.getMessage()]
    assert str(error) in line.getMessage()
    assert bool(line.exc_info) == isinstance(error, ValueError)


async def test_a_change_has_its_turn_between_missing_logs_that_can_be_created_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metadata_changes, "RETRY_SECONDS", 0)
    parts: Any = Parts()
    parts.may_commit.set()
    changes = MetadataChanges(parts, parts, parts, parts, lambda: None)
    callers: list[asyncio.Task[Any]] = []
    applied_before: list[int] = []

    async def create_missing(*_: object) -> bool:
        applied_before.append(len(parts.applied))
        if not callers:
            callers.append(asyncio.ensure_future(changes.take_producer_id_block()))
            await asyncio.sleep(0)
        parts.lacks_logs = len(applied_before) < 3
        return bool(parts.lacks_logs)

    parts.lacks_logs, parts.create_missing = True, create_missing
    changes.start()
    while len(applied_before) < 3:
        await asyncio.sleep(0)
    await callers[0]
    await changes.close()
    assert applied_before == [0, 1, 1]
