"""Produce, Fetch and what else is about records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from barnabas.protocol.records import Codec
from tests.support.answers.batches import batch
from tests.support.answers.fixed import NOW_MS
from tests.support.answers.play import Play
from tests.support.answers.scripts.made import NOWHERE, filled, produced, producer, topic


def produce(play: Play) -> None:
    play.quiet("find_coordinator", {"key_type": 0, "coordinator_keys": ["produce"]})
    key = topic(play, "produced")
    small = topic(play, "produced-small", max_message_bytes="100")
    tight = topic(play, "produced-tight", message_timestamp_after_max_ms="1000", segment_bytes="1048576")
    compacted = topic(play, "produced-compacted", cleanup_policy="compact")
    stamped = topic(play, "produced-stamped", message_timestamp_type="LogAppendTime")

    def last(case: str, name: str, topic_id: UUID, records: bytes | None, **fields: Any) -> None:
        play.last("produce", case, produced(name, topic_id, records, **fields))

    def each(case: str, name: str, topic_id: UUID, records: bytes | None, **fields: Any) -> None:
        play.each("produce", case, produced(name, topic_id, records, **fields))

    play.each("produce", "success", produced("produced", key, batch()))
    play.each("produce", "no such topic", produced("nowhere", NOWHERE, batch()))
    play.each(
        "produce", "a message larger than max.message.bytes", produced("produced-small", small, batch(b"v" * 200))
    )
    play.each("produce", "zstd", produced("produced", key, batch(codec=Codec.ZSTD)))
    last("acks=all", "produced", key, batch(), acks=-1)
    last("LogAppendTime", "produced-stamped", stamped, batch())
    each("acks=2", "produced", key, batch(), acks=2)
    each("no such partition", "produced", key, batch(), partition=7)
    each("a negative partition", "produced", key, batch(), partition=-1)
    each("no records", "produced", key, None)
    each("empty records", "produced", key, b"")
    wrong = bytearray(batch())
    wrong[-1] ^= 1
    each("a wrong CRC", "produced", key, bytes(wrong))
    each("a torn batch", "produced", key, batch()[:-3])
    each("two batches", "produced", key, batch() * 2)
    old = bytearray(batch())
    old[16] = 1
    each("magic 1", "produced", key, bytes(old))
    each("a timestamp in the future", "produced-tight", tight, batch(timestamp=NOW_MS + 10_000))
    each("no key in a compacted topic", "produced-compacted", compacted, batch(key=None))
    producer_id, epoch = producer(play, None)
    idempotent: dict[str, Any] = {"producer_id": producer_id, "producer_epoch": epoch}
    last("idempotent", "produced", key, batch(base_sequence=0, **idempotent))
    last("idempotent, a repeated batch", "produced", key, batch(base_sequence=0, **idempotent))
    each("a gap in the sequence", "produced", key, batch(base_sequence=5, **idempotent))
    newer: dict[str, Any] = {"producer_id": producer_id, "producer_epoch": 3}
    last("idempotent, a new epoch", "produced", key, batch(base_sequence=0, **newer))
    play.each("produce", "an old epoch", produced("produced", key, batch(base_sequence=1, **idempotent)))
    transactional: dict[str, Any] = {**newer, "base_sequence": 1, "is_transactional": True}
    each("transactional records without a transactional id", "produced", key, batch(**transactional))
    each("no such transactional id", "produced", key, batch(**transactional), transactional_id="nobody")
    producer_id, epoch = producer(play, "produce-tx")
    own: dict[str, Any] = {
        "producer_id": producer_id,
        "producer_epoch": epoch,
        "base_sequence": 0,
        "is_transactional": True,
    }
    play.each(
        "produce",
        "a partition outside the transaction",
        lambda version: produced("produced", key, batch(**own), transactional_id="produce-tx"),
    )
    each("internal topic", "__consumer_offsets", _id(play, "__consumer_offsets"), batch())
    two = produced("produced", key, batch())
    two["topic_data"] += produced("produced-small", small, batch(b"v" * 200))["topic_data"]
    play.each("produce", "one of two refused", two)
    nobody = play.log_in("nobody")
    play.each("produce", "without rights to the topic", produced("produced", key, batch()), on=nobody)


def _id(play: Play, name: str) -> UUID:
    found: UUID = play.quiet("metadata", {"topics": [{"name": name}]}).topics[0].topic_id
    return found


def fetched(
    name: str, topic_id: UUID, offset: int = 0, *, partition: int = 0, of: dict[str, Any] | None = None, **fields: Any
) -> dict[str, Any]:
    entry = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1 << 20, **(of or {})}
    topics = [{"topic": name, "topic_id": topic_id, "partitions": [entry]}]
    return {"replica_id": -1, "min_bytes": 1, "max_bytes": 1 << 20, "topics": topics, "session_epoch": -1, **fields}


def _follower(version: int) -> dict[str, Any]:
    return {"replica_id": 5} if version < 15 else {"replica_state": {"replica_id": 5}}


def fetch(play: Play) -> None:
    key = filled(play, "fetched", 3)
    play.each("fetch", "success", fetched("fetched", key))
    play.each("fetch", "success, read committed", fetched("fetched", key, 1, isolation_level=1))
    play.each("fetch", "success, at the end", fetched("fetched", key, 3))
    play.each("fetch", "no such topic", fetched("nowhere", NOWHERE))
    play.each("fetch", "an offset behind the end", fetched("fetched", key, 99))
    play.each("fetch", "a negative offset", fetched("fetched", key, -5))
    play.each("fetch", "no such partition", fetched("fetched", key, partition=7))
    play.each("fetch", "an old leader epoch", fetched("fetched", key, of={"current_leader_epoch": -1}))
    play.each("fetch", "a newer leader epoch", fetched("fetched", key, of={"current_leader_epoch": 9}))
    play.each("fetch", "a last fetched epoch that is newer", fetched("fetched", key, of={"last_fetched_epoch": 9}))
    play.each("fetch", "one byte", fetched("fetched", key, max_bytes=1, of={"partition_max_bytes": 1}))
    play.each("fetch", "isolation level 7", fetched("fetched", key, isolation_level=7))
    play.each("fetch", "a follower", lambda version: fetched("fetched", key, **_follower(version)))

    play.each("fetch", "without rights to the topic", fetched("fetched", key), on=play.log_in("nobody"))
    for version in (7, 12, 13, 18, 8, 9, 10, 11, 14, 15, 16, 17):  # ids of sessions are drawn in this order
        _sessions(play, version, f"fetched-{version}", filled(play, f"fetched-{version}", 3))
    for version in range(7, 19):
        _renewed(play, version, f"fetched-anew-{version}")


def _sessions(play: Play, version: int, name: str, key: UUID) -> None:
    whole = fetched(name, key, 3, session_epoch=0)
    opened = play.ask("fetch", version, "session: opened", whole)
    own: dict[str, Any] = {**whole, "session_id": opened.session_id, "topics": []}
    play.ask("fetch", version, "session: nothing new", {**own, "session_epoch": 1})
    play.quiet("produce", produced(name, key, batch()))
    play.ask("fetch", version, "session: a new record", {**own, "session_epoch": 2})
    play.ask("fetch", version, "a session's epoch", {**own, "session_epoch": 9})
    play.ask("fetch", version, "no such session", {**own, "session_id": 77, "session_epoch": 1})
    play.ask("fetch", version, "session: closed", {**own, "session_epoch": -1})


def _renewed(play: Play, version: int, name: str) -> None:
    """Fetch in a session whose topic is deleted and created anew."""
    whole = fetched(name, filled(play, name), 1, session_epoch=0)
    opened = play.quiet("fetch", whole, version)
    own = {**whole, "session_id": opened.session_id, "topics": []}
    play.quiet("delete_topics", {"topics": [{"name": name, "topic_id": None}], "timeout": 1000})
    play.ask("fetch", version, "session: a topic that was deleted", {**own, "session_epoch": 1})
    filled(play, name)
    play.ask("fetch", version, "session: a topic that was created anew", {**own, "session_epoch": 2})


def listed(name: str, timestamp: int, partition: int = 0, **fields: Any) -> dict[str, Any]:
    entry = {"partition_index": partition, "timestamp": timestamp, **fields}
    return {"replica_id": -1, "topics": [{"name": name, "partitions": [entry]}], "timeout": 1000}


def list_offsets(play: Play) -> None:
    filled(play, "listed", 2)
    for case, timestamp in (("latest", -1), ("earliest", -2), ("by timestamp", NOW_MS), ("after all", NOW_MS + 1)):
        play.each("list_offsets", f"success, {case}", listed("listed", timestamp))
    for case, timestamp in (("max timestamp", -3), ("local", -4), ("tiered", -5), ("pending upload", -6), ("-7", -7)):
        play.each("list_offsets", case, listed("listed", timestamp))
    play.each("list_offsets", "no meaning, -9", listed("listed", -9))
    play.each("list_offsets", "no such topic", listed("nowhere", -1))
    play.each("list_offsets", "no such partition", listed("listed", -1, 7))
    play.each("list_offsets", "a newer leader epoch", listed("listed", -1, current_leader_epoch=9))
    play.each("list_offsets", "isolation level 7", {**listed("listed", -1), "isolation_level": 7})
    twice = listed("listed", -1)
    twice["topics"] = twice["topics"] * 2
    play.each("list_offsets", "a partition twice", twice)


def delete_records(play: Play) -> None:
    filled(play, "shortened", 9, 2)
    filled(play, "shortened-compacted", 1, cleanup_policy="compact")

    def asked(name: str, offset: int, partition: int = 0) -> dict[str, Any]:
        return {"topics": [{"name": name, "partitions": [{"partition_index": partition, "offset": offset}]}]}

    play.each("delete_records", "success", lambda version: asked("shortened", version + 1))
    play.each("delete_records", "no such topic", asked("nowhere", 1))
    play.each("delete_records", "no such partition", asked("shortened", 1, 7))
    play.each("delete_records", "behind the end", asked("shortened", 99))
    play.each("delete_records", "a negative offset", asked("shortened", -2))
    play.each("delete_records", "up to the high watermark", asked("shortened", -1))
    play.each("delete_records", "a compacted topic", asked("shortened-compacted", 1))
    play.quiet("find_coordinator", {"key_type": 0, "coordinator_keys": ["x"]})
    play.each("delete_records", "an internal topic", asked("__consumer_offsets", 0))


def init_producer_id(play: Play) -> None:
    _initialize(play, range(6), (3, 5, 4))
    given = {"producer_id": 1, "producer_epoch": 0}
    play.ask("init_producer_id", 5, "an id without a transactional id", given)
    _initialize(play, range(6, 7), (6,))
    values = {"transactional_id": "init-2pc", "transaction_timeout": 60_000}
    play.ask("init_producer_id", 6, "two-phase commit is off", {**values, "enable2_pc": True})
    play.ask("init_producer_id", 6, "a prepared transaction is kept", {**values, "keep_prepared_txn": True})


def _initialize(play: Play, versions: Sequence[int], with_epochs: Sequence[int]) -> None:
    def each(case: str, asked: Mapping[str, Any]) -> None:
        for version in versions:
            play.ask("init_producer_id", version, case, asked)

    each("success", {"transaction_timeout": 1000})
    values = {"transactional_id": "init-tx", "transaction_timeout": 60_000}
    each("success, transactional", values)
    for version in with_epochs:
        last = play.ask("init_producer_id", version, "success, again", values)
        known = {"producer_id": last.producer_id, "producer_epoch": last.producer_epoch}
        play.ask("init_producer_id", version, "success, a known epoch", {**values, **known})
        play.quiet("init_producer_id", values)
        play.quiet("init_producer_id", values)
        play.ask("init_producer_id", version, "an old epoch", {**values, **known})
    each("an empty transactional id", {**values, "transactional_id": ""})
    each("the timeout is too long", {**values, "transaction_timeout": 1 << 30})
    each("no timeout", {**values, "transaction_timeout": 0})
    each("another id", {**values, "producer_id": 999_999, "producer_epoch": 0})
    each("an id without an epoch", {**values, "producer_id": 1})


def offset_for_leader_epoch(play: Play) -> None:
    filled(play, "epochs", 2)

    def asked(name: str, epoch: int, partition: int = 0, current: int = -1) -> dict[str, Any]:
        entry = {"partition": partition, "current_leader_epoch": current, "leader_epoch": epoch}
        return {"topics": [{"topic": name, "partitions": [entry]}]}

    play.each("offset_for_leader_epoch", "success", asked("epochs", 0))
    play.each("offset_for_leader_epoch", "an epoch to come", asked("epochs", 9))
    play.each("offset_for_leader_epoch", "no such topic", asked("nowhere", 0))
    play.each("offset_for_leader_epoch", "no such partition", asked("epochs", 0, 7))
    play.each("offset_for_leader_epoch", "a newer leader epoch", asked("epochs", 0, current=9))


def describe_producers(play: Play) -> None:
    key = topic(play, "producers", 2)
    producer_id, epoch = producer(play, None)
    records = batch(producer_id=producer_id, producer_epoch=epoch, base_sequence=0)
    play.quiet("produce", produced("producers", key, records))
    for case, name, index in (
        ("success", "producers", 0),
        ("success, none", "producers", 1),
        ("no such partition", "producers", 7),
        ("no such topic", "nowhere", 0),
    ):
        play.each("describe_producers", case, {"topics": [{"name": name, "partition_indexes": [index]}]})
    eleven = {"topics": [{"name": "producers", "partition_indexes": [1] * 11}]}
    play.each("describe_producers", "a partition eleven times", eleven)
