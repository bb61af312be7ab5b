"""Kafka Streams with exactly_once_v2: a word count, killed with the broker at seeded moments.

With BARNABAS_COMPATIBILITY_BROKER=kafka:4.3.0 it runs against Apache Kafka, which checks the test (see test_clients).
"""

from __future__ import annotations

import random
import threading
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.interop.clients.target import Target
from tests.support.eventually import eventually
from tests.support.kafka.application import Application
from tests.support.storage.committed_records import committed_records

pytestmark = pytest.mark.timeout(300)  # several starts of a JVM, and of Kafka's broker when that is the target

SEED = 15
PARTITIONS = 2
WORDS = [f"word{number}" for number in range(20)]
WORDS_PER_LINE = 4
COUNTS_PER_ROUND = 2000
ROUNDS = ("application", "broker", "application", "both")
WAIT_S = 90.0
_PACE_S = 0.001


@pytest.mark.ecosystem("Kafka Streams", "4.3.0", "word count, exactly once, application killed too")
def test_a_word_count_is_exact_when_the_application_and_the_broker_are_killed(target: Target, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    target.create_topic("lines", PARTITIONS)
    target.create_topic("counts", PARTITIONS)
    arguments = [target.bootstrap, "word-count", "lines", "counts", str(tmp_path / "state")]
    lines = Lines(target.bootstrap)

    with Application(tmp_path / "application", "WordCount", arguments) as application:
        with lines:
            for killed in ROUNDS:
                wait_for_counts(target, len(counts(target)) + chance.randrange(1, COUNTS_PER_ROUND))
                if killed in ("application", "both"):
                    application.kill()
                if killed in ("broker", "both"):
                    target.restart()
                if killed in ("application", "both"):
                    application.start()
        wait_for_counts(target, lines.words.total())

    # Each occurrence of a word gave its next count: none twice, none missing, in order.
    found: dict[str, list[int]] = defaultdict(list)
    for word, count in counts(target):
        found[word].append(count)
    assert found == {word: list(range(1, total + 1)) for word, total in lines.words.items()}


class Lines:
    """Produces lines of random words on a thread while the context is open; `words` counts them.

    A kill must find the application at work: after a pause it would have committed everything.
    """

    def __init__(self, bootstrap: str) -> None:
        self.words: Counter[str] = Counter()
        self._chance = random.Random(SEED)
        settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "reconnect.backoff.max.ms": 200}
        self._producer = Producer(settings)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(WAIT_S)
        assert self._producer.flush(WAIT_S) == 0

    def _run(self) -> None:
        while not self._stopping.wait(_PACE_S):
            line = self._chance.choices(WORDS, k=WORDS_PER_LINE)
            self.words.update(line)
            self._producer.produce("lines", " ".join(line), partition=self._chance.randrange(PARTITIONS))
            self._producer.poll(0)


def counts(target: Target) -> list[tuple[str, int]]:
    """Return the committed words and counts of the output."""
    return [
        ((record.key or b"").decode(), int(record.value or b"0"))
        for partition in range(PARTITIONS)
        for record in committed_records(target.log_directory, "counts", partition)
    ]


def wait_for_counts(target: Target, total: int) -> None:
    """Wait until the output has this many committed records."""
    eventually(lambda: len(counts(target)) >= total or None, what=f"{total} counts", timeout_s=WAIT_S)
