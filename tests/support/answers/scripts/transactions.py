"""Transactions: each version ends one of its own."""

from __future__ import annotations

from typing import Any

from tests.support.answers.batches import batch
from tests.support.answers.play import Play
from tests.support.answers.scripts.made import commit, joined, produced, producer, topic
from tests.support.kafka.wire_producer import await_complete


def _own(play: Play, transactional_id: str) -> dict[str, Any]:
    producer_id, epoch = producer(play, transactional_id)
    return {"transactional_id": transactional_id, "producer_id": producer_id, "producer_epoch": epoch}


def _added(own: dict[str, Any], *topics: tuple[str, list[int]], **fields: Any) -> dict[str, Any]:
    entries = [{"name": name, "partitions": partitions} for name, partitions in topics]
    one = {**own, "topics": entries, **fields}
    old = {f"v3_and_below_{name}": value for name, value in one.items() if name != "verify_only"}
    return {"transactions": [one], **old}


def add_partitions_to_txn(play: Play) -> None:
    api = "add_partitions_to_txn"
    topic(play, "added", 2)
    own = _own(play, "adding")
    play.each(api, "success", _added(own, ("added", [0, 1])))
    play.each(api, "no such topic, so none is added", _added(own, ("added", [0]), ("nowhere", [0])))
    play.each(api, "no such partition", _added(own, ("added", [7])))
    play.each(api, "another producer id", _added({**own, "producer_id": 999_999}, ("added", [0])))
    play.each(api, "an old epoch", _added({**own, "producer_epoch": -1}, ("added", [0])))
    play.each(api, "a newer epoch", _added({**own, "producer_epoch": 9}, ("added", [0])))
    play.each(api, "no such id", _added({**own, "transactional_id": "nobody"}, ("added", [0])))
    play.each(api, "an empty id", _added({**own, "transactional_id": ""}, ("added", [0])))
    play.each(api, "verified", _added(own, ("added", [0]), verify_only=True), since=4)
    idle = _own(play, "idle")
    play.each(api, "verified outside a transaction", _added(idle, ("added", [0]), verify_only=True), since=4)
    play.each(api, "an internal topic", _added(own, ("__transaction_state", [0])))


def add_offsets_to_txn(play: Play) -> None:
    api = "add_offsets_to_txn"
    own = {**_own(play, "offsets"), "group_id": "offsets-group"}
    play.each(api, "success", own)
    play.each(api, "another producer id", {**own, "producer_id": 999_999})
    play.each(api, "an old epoch", {**own, "producer_epoch": -1})
    play.each(api, "no such id", {**own, "transactional_id": "nobody"})
    play.each(api, "an empty id", {**own, "transactional_id": ""})
    play.each(api, "an empty group", {**own, "group_id": ""})


def txn_offset_commit(play: Play) -> None:
    api = "txn_offset_commit"
    topic(play, "txn-offsets")
    member, generation = joined(play, "txn-group")
    for version in range(6):
        own = {**_own(play, f"committing-{version}"), "group_id": "txn-group"}
        play.quiet("add_offsets_to_txn", own)
        values = {**own, "topics": commit("txn-offsets", None)}
        if version >= 3:
            values |= {"member_id": member, "generation_id": generation}
        play.ask(api, version, "success", values)
        play.ask(api, version, "another epoch", {**values, "producer_epoch": 9})
        play.ask(api, version, "another producer id", {**values, "producer_id": 999_999})
        nowhere = {**values, "topics": commit("nowhere", None)}
        play.ask(api, version, "no such topic", nowhere)
        if version >= 3:
            play.ask(api, version, "another generation", {**values, "generation_id": 99})
            play.ask(api, version, "no such member", {**values, "member_id": "nobody"})
            instance = {**values, "group_instance_id": "nobody"}
            play.ask(api, version, "no such instance", instance)
    play.each(api, "metadata too long", {**values, "topics": commit("txn-offsets", None, metadata="m" * 4097)})
    play.each(api, "an empty group", {**values, "group_id": ""})
    play.each(api, "no such id", {**values, "transactional_id": "nobody"})
    outside = {**_own(play, "committing-outside"), "group_id": "txn-other", "topics": commit("txn-offsets", None)}
    play.each(api, "a group outside the transaction", outside)


def end_txn(play: Play) -> None:
    topic_id = topic(play, "ended")
    for version in range(6):
        own = _own(play, f"ending-{version}")
        play.quiet("add_partitions_to_txn", _added(own, ("ended", [0])), 3)
        numbers = {
            "producer_id": own["producer_id"],
            "producer_epoch": own["producer_epoch"],
            "base_sequence": 0,
        }
        records = batch(is_transactional=True, **numbers)
        play.quiet("produce", produced("ended", topic_id, records, transactional_id=f"ending-{version}"))
        play.ask("end_txn", version, "success, committed", {**own, "committed": True})
        await_complete(play.main, f"ending-{version}")
        if version < 5:
            play.ask("end_txn", version, "aborted after the commit", {**own, "committed": False})
        play.ask("end_txn", version, "an old epoch", {**own, "producer_epoch": -1, "committed": True})
        play.ask("end_txn", version, "another id", {**own, "producer_id": 999_999, "committed": True})
        play.ask("end_txn", version, "no such id", {**own, "transactional_id": "nobody", "committed": True})
        idle = _own(play, f"ending-idle-{version}")
        play.ask("end_txn", version, "an empty transaction, committed", {**idle, "committed": True})
        idle = _own(play, f"ending-idle-{version}")
        play.ask("end_txn", version, "an empty transaction, aborted", {**idle, "committed": False})
    play.each("end_txn", "an empty id", {**own, "transactional_id": "", "committed": True})


def write_txn_markers(play: Play) -> None:
    api = "write_txn_markers"
    topic(play, "marked")

    def asked(name: str, **fields: Any) -> dict[str, Any]:
        topics = [{"name": name, "partition_indexes": [0]}]
        return {"markers": [{"producer_id": 5, "transaction_result": True, "topics": topics, **fields}]}

    play.each(api, "success, committed", lambda version: asked("marked", producer_epoch=version))
    play.each(api, "success, aborted", asked("marked", producer_epoch=7, transaction_result=False))
    play.each(api, "an old epoch", asked("marked", producer_epoch=1))
    play.each(api, "no such topic", asked("nowhere"))
    play.each(api, "an older coordinator", asked("marked", producer_epoch=8, coordinator_epoch=-1))


def describe_transactions(play: Play) -> None:
    own = _own(play, "described")
    topic(play, "described")
    play.quiet("add_partitions_to_txn", _added(own, ("described", [0])), 3)
    _own(play, "described-idle")
    play.each("describe_transactions", "success", {"transactional_ids": ["described"]})
    play.each("describe_transactions", "before its first transaction", {"transactional_ids": ["described-idle"]})
    play.each("describe_transactions", "no such id", {"transactional_ids": ["nobody"]})
    play.each("describe_transactions", "an empty id", {"transactional_ids": [""]})


def list_transactions(play: Play) -> None:
    play.each("list_transactions", "success", {})
    play.each("list_transactions", "success, of a state", {"state_filters": ["Ongoing"]})
    play.each("list_transactions", "no such state", {"state_filters": ["Nothing"]})
    play.each("list_transactions", "success, of a producer", {"producer_id_filters": [1]})
    play.each("list_transactions", "success, older than 1 ms", {"duration_filter": 1})
    play.each("list_transactions", "success, a pattern", {"transactional_id_pattern": "desc.*"})
    play.each("list_transactions", "no pattern", {"transactional_id_pattern": "("})
