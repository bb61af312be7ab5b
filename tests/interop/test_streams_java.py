"""Kafka Streams with exactly_once_v2: a word count, killed with the broker at seeded moments.

With BARNABAS_COMPATIBILITY_BROKER=kafka:4.3.0 it runs against Apache Kafka, which checks the test (see test_clients).
"""

from __future__ import annotations

import random
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
LINES_PER_ROUND = 300
WORDS_PER_LINE = 4
ROUNDS = ("application", "broker", "application", "broker", "both")
WAIT_S = 90.0


def test_a_word_count_is_exact_when_the_application_and_the_broker_are_killed(target: Target, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    target.create_topic("lines", PARTITIONS)
    target.create_topic("counts", PARTITIONS)
    produced: Counter[str] = Counter()
    arguments = [target.bootstrap, "word-count", "lines", "counts", str(tmp_path / "state")]

    with Application(tmp_path / "application", "WordCount", arguments) as application:
        for killed in ROUNDS:
            before = produced.total()
            produced += produce_lines(target.bootstrap, chance)
            wait_for_counts(target, chance.randrange(before + 1, produced.total()))
            if killed in ("application", "both"):
                application.kill()
            if killed in ("broker", "both"):
                target.restart()
            if killed in ("application", "both"):
                application.start()
        wait_for_counts(target, produced.total())

    # Each occurrence of a word gave its next count: none twice, none missing, in order.
    found: dict[str, list[int]] = defaultdict(list)
    for word, count in counts(target):
        found[word].append(count)
    assert found == {word: list(range(1, total + 1)) for word, total in produced.items()}


def produce_lines(bootstrap: str, chance: random.Random) -> Counter[str]:
    """Produce a round of lines to all partitions; return how often they contain each word."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    words: Counter[str] = Counter()
    for number in range(LINES_PER_ROUND):
        line = chance.choices(WORDS, k=WORDS_PER_LINE)
        words.update(line)
        producer.produce("lines", " ".join(line), partition=number % PARTITIONS)
    assert producer.flush(WAIT_S) == 0
    return words


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
