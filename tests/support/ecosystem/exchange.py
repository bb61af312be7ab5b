"""A client library at work while the broker is killed: a program that produces, and one that reads in a group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from tests.support.daemon import Daemon
from tests.support.eventually import eventually
from tests.support.program import Program
from tests.support.storage.committed_records import committed_records

RECORDS = 3000
PARTITIONS = 3
WAIT_S = 240.0  # a JVM starts slowly on a busy machine
TOPIC = "deliveries"
GROUP = "readers"


@dataclass(frozen=True)
class Client:
    """How a client library's programs are started.

    Each gets the bootstrap address and the topic as arguments. `produce` then gets the number of records: their values
    are `record 0`, `record 1`, and so on. It waits for each acknowledgement and then 2 ms, so that it is still at work
    when the broker is killed, and ends with 0 when the last one has come. `consume` gets the group, starts at the
    earliest offset, prints each value as a line, commits what it has printed, and runs until it is killed;
    without `commits` the client has no groups, and reads all partitions from the start.
    """

    produce: Sequence[str]
    consume: Sequence[str]
    environ: Mapping[str, str] = field(default_factory=dict)
    commits: bool = True


def values(count: int = RECORDS) -> list[str]:
    """Return the values of this many records."""
    return [f"record {number}" for number in range(count)]


def survive_kills(
    daemon: Daemon, client: Client, directory: Path, *, total: int = RECORDS, partitions: int = PARTITIONS
) -> None:
    """Produce and read while the broker is killed and started twice, the second time together with the reader.

    Asserts that every record is read, that the committed offsets of a group reach the ends of the partitions, and that
    a new reader gets every record as well.
    """
    daemon.create_topic(TOPIC, partitions=partitions)
    environ = client.environ
    producer = Program(directory / "producer", [*client.produce, daemon.bootstrap, TOPIC, str(total)], environ)
    consumer = Program(directory / "consumer", [*client.consume, daemon.bootstrap, TOPIC, GROUP], environ)

    with consumer, producer:
        for killed in range(2):
            wait_for_lines(consumer, total, total // 6 * (killed + 1))
            assert producer.running, "the producer had ended before the broker was killed"
            if killed:
                consumer.kill()
            restart(daemon, TOPIC, partitions)
            if killed:
                consumer.start()
        assert producer.wait(WAIT_S) == 0
        wait_for_lines(consumer, total)
        if client.commits:
            ends = end_offsets(daemon.bootstrap, partitions)
            wait_for(lambda: committed_offsets(daemon.bootstrap, partitions) == ends, True, "everything is committed")
    # A record that the broker lost may have been read before the kill.
    read_in_group(daemon, client, directory, "again", total=total)


def restart(daemon: Daemon, topic: str, partitions: int) -> None:
    """Kill the broker and start it again. Asserts that no record of the topic is gone: software may write it again."""

    def records() -> set[tuple[int, int, bytes | None]]:
        return {
            (partition, record.offset, record.value)
            for partition in range(partitions)
            for record in committed_records(daemon.data_directory, topic, partition)
        }

    before = records()
    daemon.restart(clean=False)
    assert not before - records()


def read_in_group(
    daemon: Daemon, client: Client, directory: Path, group: str, *, topic: str = TOPIC, total: int = RECORDS
) -> None:
    """Assert that a reader in a new group gets the values of all records."""
    command = [*client.consume, daemon.bootstrap, topic, group]
    with Program(directory / f"{group}-{topic}", command, client.environ) as reader:
        wait_for_lines(reader, total)


def wait_for_lines(reader: Program, total: int, count: int | None = None) -> None:
    """Wait until a program has printed the values of this many of `total` records, or of all of them."""
    expected = set(values(total))
    wait_for(lambda: len(expected & set(reader.lines)), total if count is None else count, "records are read")


def wait_for(read: Callable[[], int], count: int, what: str) -> None:
    """Wait until `read` returns at least `count`."""
    eventually(lambda: read() >= count or None, what=f"{count}: {what}", timeout_s=WAIT_S)


def end_offsets(bootstrap: str, partitions: int) -> list[int]:
    """Return the log end offset of each partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    ends = [consumer.get_watermark_offsets(TopicPartition(TOPIC, number), 30)[1] for number in range(partitions)]
    consumer.close()
    return ends


def committed_offsets(bootstrap: str, partitions: int) -> list[int]:
    """Return the group's committed offset of each partition, or a negative number."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
    found = consumer.committed([TopicPartition(TOPIC, number) for number in range(partitions)], 30)
    consumer.close()
    return [each.offset for each in found]
