"""Kafka Streams, exactly once and at least once: a word count, killed with the broker at seeded moments.

With BARNABAS_COMPATIBILITY_BROKER=kafka:4.3.0 it runs against Apache Kafka, which checks the test (see test_clients).
"""

from __future__ import annotations

import itertools
import random
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.interop.clients.target import Target
from tests.support.eventually import eventually
from tests.support.kafka.application import Application
from tests.support.storage.committed_records import committed_records

pytestmark = pytest.mark.timeout(600)  # several starts of a JVM, and of Kafka's broker when that is the target

SEED = 15
PARTITIONS = 2
WORDS = [f"word{number}" for number in range(20)]
WORDS_PER_LINE = 3
COUNTS_PER_ROUND = 2000
WORDS_AHEAD = 4000
"""How many words may be produced and not yet counted, so that a slow machine does not get more and more to do."""
WAIT_S = 120.0
_PACE_S = 0.002

Counts = Sequence[tuple[str, int]]
"""Words and counts in the order of the output's partitions."""


@pytest.mark.ecosystem("Kafka Streams", "4.3.0", "word count, exactly once, application killed too")
def test_a_word_count_is_exact_when_the_application_and_the_broker_are_killed(target: Target, tmp_path: Path) -> None:
    def is_whole(found: Counts, words: Counter[str]) -> bool:
        return len(found) >= words.total()

    rounds = ("application", "broker", "application", "both")
    found, words = count_through_kills(target, tmp_path, "exact", rounds, is_whole)

    # Each occurrence of a word gave its next count: none twice, none missing, in order.
    by_word: dict[str, list[int]] = defaultdict(list)
    for word, count in found:
        by_word[word].append(count)
    assert by_word == {word: list(range(1, total + 1)) for word, total in words.items()}


@pytest.mark.ecosystem("Kafka Streams", "4.3.0", "word count, at least once, application killed too")
def test_a_word_count_at_least_once_loses_nothing_when_the_application_and_the_broker_are_killed(
    target: Target, tmp_path: Path
) -> None:
    # A repeated record counts again, so a count may be too high. A word that is in one line only has to be there; with
    # the other ones, counts in the state would show a loss.
    def is_whole(found: Counts, words: Counter[str]) -> bool:
        highest: dict[str, int] = defaultdict(int)
        for word, count in found:
            highest[word] = max(count, highest[word])
        return all(highest[word] >= total for word, total in words.items())

    found, words = count_through_kills(
        target, tmp_path, "repeating", ("broker", "both"), is_whole, "processing.guarantee=at_least_once"
    )

    assert {word for word, _ in found} == words.keys()


def count_through_kills(
    target: Target,
    directory: Path,
    job: str,
    rounds: Sequence[str],
    is_whole: Callable[[Counts, Counter[str]], bool],
    *settings: str,
) -> tuple[Counts, Counter[str]]:
    """Count words on topics of this job while what each round names is killed; wait until the counts are whole.

    Returns the counts, and how often each word was in the lines.
    """
    chance = random.Random(SEED)
    lines, counts = f"{job}-lines", f"{job}-counts"
    target.create_topic(lines, PARTITIONS)
    target.create_topic(counts, PARTITIONS)
    arguments = [target.bootstrap, job, lines, counts, str(directory / "state"), *settings]
    feed = Lines(target.bootstrap, lines)

    def read() -> Counts:
        return counted(target, counts)

    def wait_for_counts(total: int) -> None:
        def arrived() -> bool | None:
            feed.counted = len(read())
            return feed.counted >= total or None

        eventually(arrived, what=f"{total} counts", timeout_s=WAIT_S)

    with Application(directory / "application", "WordCount", arguments) as application:
        with feed:
            for killed in rounds:
                wait_for_counts(len(read()) + chance.randrange(1, COUNTS_PER_ROUND))
                if killed in ("application", "both"):
                    application.kill()
                if killed in ("broker", "both"):
                    target.restart()
                if killed in ("application", "both"):
                    application.start()
        eventually(lambda: is_whole(read(), feed.words) or None, what="counts of all words", timeout_s=WAIT_S)
    # A line that the broker lost may have been counted before the kill.
    stored: Counter[str] = Counter()
    for partition in range(PARTITIONS):
        for record in committed_records(target.log_directory, lines, partition):
            stored.update((record.value or b"").decode().split())
    assert stored == feed.words
    return read(), feed.words


class Lines:
    """Produces lines on a thread while the context is open, each with a word of its own; `words` counts all words.

    It stays at most WORDS_AHEAD words ahead of `counted`, which the test sets.

    A kill must find the application at work: after a pause it would have committed everything.
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.words: Counter[str] = Counter()
        self.counted = 0
        self._topic = topic
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
        for number in itertools.count():
            while self.words.total() - self.counted > WORDS_AHEAD and not self._stopping.is_set():
                self._producer.poll(_PACE_S)
            if self._stopping.wait(_PACE_S):
                return
            line = [*self._chance.choices(WORDS, k=WORDS_PER_LINE), f"line{number}"]
            self.words.update(line)
            self._producer.produce(self._topic, " ".join(line), partition=self._chance.randrange(PARTITIONS))
            self._producer.poll(0)


def counted(target: Target, topic: str) -> Counts:
    """Return the committed words and counts of the output."""
    return [
        ((record.key or b"").decode(), int(record.value or b"0"))
        for partition in range(PARTITIONS)
        for record in committed_records(target.log_directory, topic, partition)
    ]
