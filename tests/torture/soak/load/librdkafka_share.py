"""librdkafka: a member of a share group, a preview in 2.16. A thread."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Sequence

from confluent_kafka import (
    AcknowledgeType,
    IllegalStateException,
    KafkaException,
    Message,
    ShareConsumer,
    TopicPartition,
)

from tests.torture.soak.history import ACCEPTED, REJECTED, RELEASED, Acknowledgement, Delivery
from tests.torture.soak.load.librdkafka import QUIET, TIMEOUT_S
from tests.torture.soak.load.stage import Stage
from tests.torture.soak.load.threads import run_in_thread

_TYPES = {
    ACCEPTED: AcknowledgeType.ACCEPT,
    RELEASED: AcknowledgeType.RELEASE,
    REJECTED: AcknowledgeType.REJECT,
}
_CLOSE_S = 30.0
_CHANCES = {ACCEPTED: 93, RELEASED: 5, REJECTED: 2}


class LibrdkafkaShareMember:
    """Acknowledges what each poll returned, leaves, and comes back, until the other members know that all is done."""

    def __init__(self, stage: Stage, name: str, bootstrap: str) -> None:
        self._stage = stage
        self._name = name
        self._bootstrap = bootstrap

    async def run(self) -> None:
        """Read until every record is done."""
        await run_in_thread(self._run)

    def _run(self) -> None:
        stage = self._stage
        chance = stage.chance(self._name)
        lives = 0
        while not self._is_over():
            lives += 1
            began = stage.history.tick()
            consumer = ShareConsumer(
                {
                    **QUIET,
                    "bootstrap.servers": self._bootstrap,
                    "group.id": stage.share_group,
                    "share.acknowledgement.mode": "explicit",
                }
            )
            try:
                consumer.subscribe([stage.shared])
                for _ in range(chance.choice((20, 100, 1000))):
                    if self._is_over() or not self._read(consumer, f"{self._name}/{lives}", began, chance):
                        break
            except (KafkaException, IllegalStateException) as error:  # the latter for what it has lost meanwhile
                stage.note_error(self._name, error)
                time.sleep(0.2)
            finally:
                # What it could not acknowledge is its own until it leaves: it does not try again.
                if not _closed(consumer):
                    stage.note_error(f"{self._name}/{lives}", f"librdkafka did not close within {_CLOSE_S} s")

    def _is_over(self) -> bool:
        return self._stage.shared_done.is_set() or self._stage.over.is_set()

    def _read(self, consumer: ShareConsumer, session: str, since: int, chance: random.Random) -> bool:
        """Get records and acknowledge them; return whether all of that was answered without an error.

        `since`: it fetches ahead, so they may have been acquired at any time.
        """
        history = self._stage.history
        messages = [each for each in consumer.poll(timeout=0.1) if each.error() is None]
        deliveries = _deliveries(session, since, history.tick(), messages)
        history.deliveries += deliveries
        kinds = chance.choices(list(_CHANCES), list(_CHANCES.values()), k=len(messages))
        errors: dict[TopicPartition, KafkaException | None] = {}
        try:
            for message, kind in zip(messages, kinds, strict=True):
                consumer.acknowledge(message, _TYPES[kind])
            if messages:
                errors = consumer.commit_sync(TIMEOUT_S)
        finally:
            ended = history.tick()
            written = {(each.topic, each.partition) for each, error in errors.items() if error is None}
            # A record that this member had lost, and another one has done, is acknowledged without an error. So `began`
            # does not say that the record was this member's until then.
            history.acknowledgements += [
                Acknowledgement(each, kind, each.tick, ended if each.place in written else None)
                for each, kind in zip(deliveries, kinds, strict=True)
            ]
        failed = [f"{place}: {error}" for place, error in errors.items() if error is not None]
        if failed:
            self._stage.note_error(session, failed)
        return all(each.place in written for each in deliveries)


def _closed(consumer: ShareConsumer) -> bool:
    """Close a consumer; return whether it ended in time.

    After a reconnection, librdkafka 2.16 sometimes waits without end for a partition to stop ("waiting for 1 toppar(s),
    0 commit(s), 0 share session leave(s) remaining"), with no request on its way.
    """

    def close() -> None:
        with contextlib.suppress(KafkaException):
            consumer.close()

    closing = threading.Thread(target=close, daemon=True)
    closing.start()
    closing.join(_CLOSE_S)
    return not closing.is_alive()


def _deliveries(session: str, since: int, tick: int, messages: Sequence[Message]) -> list[Delivery]:
    found = []
    for each in messages:
        topic, partition, offset, count = each.topic(), each.partition(), each.offset(), each.delivery_count()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        assert count is not None
        found.append(Delivery(session, (topic, partition), since, tick, offset, bytes(each.value() or b""), count))
    return found
