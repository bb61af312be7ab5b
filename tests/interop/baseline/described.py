"""What a broker says about everything that it keeps, asked over Kafka's protocol with kio's codecs.

`describe` returns plain values by place, which are equal for two brokers that have the same directory. Batches are
compared byte for byte; control batches without their times, since a start may complete a transaction.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import PurePath
from typing import Any

from barnabas.clients.testing import BrokerProcess
from barnabas.protocol.records.batch import iter_batches
from barnabas.protocol.records.reader import read_records
from tests.support.authorization.entities import request
from tests.support.eventually import eventually
from tests.support.kafka.kafka_wire import KafkaWire

Description = dict[tuple[object, ...], Any]
"""Place, such as ("batch", topic, partition, offset), -> what is there."""

_EARLIEST, _LATEST = -2, -1
_COMMITTED = 1
_LOADING = (14, 15, 16)
_ANY = 1
_TOPIC, _BROKER, _GROUP = 2, 4, 32
_SET = {1, 2, 3, 8}
"""Sources of values that somebody has set: on the topic, the broker, all brokers, the group."""
_UNSTABLE = (
    *("throttle_time", "host", "port", "rack", "total_bytes", "usable_bytes", "current_txn_start_offset"),
    *("leader_epoch", "coordinator_epoch", "last_timestamp", "max_num_offsets"),
)
"""Of the machine, or raised by each start."""


def describe(broker: BrokerProcess) -> Description:
    """Return what a broker says once its coordinators have loaded everything and ended what was prepared."""
    with KafkaWire(broker.host, broker.port) as wire:
        return dict(_Describer(wire).run())


def differences(one: Description, other: Description) -> list[str]:
    """Return a line for each place where two descriptions differ."""
    places = sorted(one.keys() | other.keys(), key=str)
    return [
        f"{' '.join(map(str, place))}: {one.get(place)!r:.600} and {other.get(place)!r:.600}"
        for place in places
        if one.get(place) != other.get(place)
    ]


class _Describer:
    def __init__(self, wire: KafkaWire) -> None:
        self._wire = wire
        self.found: Description = {}

    def run(self) -> Description:
        answer = self._ask("metadata", 12, topics=None, allow_auto_topic_creation=False, **_no("topic"))
        self.found["cluster",] = answer.cluster_id
        topics = {each.name: each for each in answer.topics}
        self._groups()
        self._transactions()
        for name, topic in topics.items():
            self.found["topic", name] = (topic.topic_id, topic.is_internal, topic.error_code)
            for each in topic.partitions:
                self._partition(name, each.partition_index)
        self._configs(_TOPIC, topics)
        self._configs(_BROKER, ("", str(answer.brokers[0].node_id)))
        self._security()
        self._log_dirs()
        return self.found

    def _ask(self, api: str, version: int, **values: Any) -> Any:
        self._wire.send(request(api, version, values))
        return self._wire.receive(api, version)

    def _loaded(self, api: str, version: int, **values: Any) -> Any:
        """Ask until the coordinator has loaded its topic."""

        def ask() -> Any:
            answer = self._ask(api, version, **values)
            return None if _codes(answer) & {*_LOADING} else answer

        return eventually(ask, what=f"an answer to {api}")

    def _partition(self, topic: str, number: int) -> None:
        for name, timestamp, isolation in (
            ("log start", _EARLIEST, 0),
            ("log end", _LATEST, 0),
            ("last stable offset", _LATEST, _COMMITTED),
        ):
            asked = {"partition_index": number, "current_leader_epoch": -1, "timestamp": timestamp}
            wanted = [{"name": topic, "partitions": [asked]}]
            answer = self._ask("list_offsets", 8, replica_id=-1, isolation_level=isolation, topics=wanted)
            row = answer.topics[0].partitions[0]
            self.found[name, topic, number] = (int(row.error_code), row.offset)
        offset, end = self.found["log start", topic, number][1], self.found["log end", topic, number][1]
        while offset < end:
            part = self._wire.fetch(11, topic, offset, partition=number)
            assert part.error_code == 0, (topic, number, offset, part.error_code)
            assert part.records, (topic, number, offset, end)
            self.found["high watermark and log start", topic, number] = (part.high_watermark, part.log_start_offset)
            for batch in iter_batches(part.records):
                batch.ensure_valid()
                stored: object = bytes(batch.bytes)
                if batch.is_control:
                    stored = (
                        batch.producer_id,
                        batch.producer_epoch,
                        [bytes(e.key or b"") for e in read_records(batch)],
                    )
                self.found["batch", topic, number, batch.base_offset] = stored
                offset = batch.next_offset
        topics = [{"name": topic, "partition_indexes": [number]}]
        answer = self._ask("describe_producers", 0, topics=topics)
        self.found["producers", topic, number] = _plain(answer.topics[0].partitions[0])

    def _groups(self) -> None:
        listed = self._loaded("list_groups", 5, states_filter=[], types_filter=[]).groups
        self.found["groups",] = sorted((each.group_id, each.group_type, each.group_state) for each in listed)
        for group, kind in sorted((each.group_id, each.group_type) for each in listed):
            api, version = {
                "consumer": ("consumer_group_describe", 1),
                "share": ("share_group_describe", 1),
                "streams": ("streams_group_describe", 0),
            }.get(kind, ("describe_groups", 6))
            names = {"groups": [group]} if kind == "classic" else {"group_ids": [group]}
            answer = self._loaded(api, version, **names, include_authorized_operations=False)
            self.found["group", group] = _plain(answer)
            if kind == "share":
                wanted: dict[str, Any] = {"group_id": group, "topics": None}
                offsets = self._loaded("describe_share_group_offsets", 1, groups=[wanted])
            else:
                wanted = {"group_id": group, "member_id": None, "member_epoch": -1, "topics": None}
                offsets = self._loaded("offset_fetch", 9, groups=[wanted], require_stable=False)
            self.found["offsets of group", group] = _plain(offsets)
        self._configs(_GROUP, [each.group_id for each in listed])

    def _transactions(self) -> None:
        def ended() -> Any:
            values = {"state_filters": [], "producer_id_filters": [], "duration_filter": -1}
            states = self._loaded("list_transactions", 1, **values).transaction_states
            return None if any("Prepare" in each.transaction_state for each in states) else [states]

        (listed,) = eventually(ended, what="the end of prepared transactions")
        for each in listed:
            self.found["transaction", each.transactional_id] = (each.producer_id, each.transaction_state)
            if each.transaction_state == "Ongoing":  # kio does not read the begin of the others, which is -1
                answer = self._loaded("describe_transactions", 0, transactional_ids=[each.transactional_id])
                self.found["partitions of transaction", each.transactional_id] = _plain(answer)

    def _configs(self, kind: int, names: Any) -> None:
        for name in names:
            wanted = [{"resource_type": kind, "resource_name": name, "configuration_keys": None}]
            values = {"include_synonyms": False, "include_documentation": False}
            for found in self._ask("describe_configs", 4, resources=wanted, **values).results:
                rows = {each.name: each.value for each in found.configs if each.config_source in _SET}
                self.found["configs", kind, name] = (int(found.error_code), rows)

    def _security(self) -> None:
        self.found["users",] = _plain(self._ask("describe_user_scram_credentials", 0, users=None))
        filters = {"resource_type_filter": _ANY, "resource_name_filter": None, "pattern_type_filter": _ANY}
        filters |= {"principal_filter": None, "host_filter": None, "operation": _ANY, "permission_type": _ANY}
        self.found["ACLs",] = _plain(self._ask("describe_acls", 3, **filters))
        self.found["quotas",] = _plain(self._ask("describe_client_quotas", 1, components=[], strict=False))

    def _log_dirs(self) -> None:
        for found in self._ask("describe_log_dirs", 4, topics=None).results:
            for topic in found.topics:
                for each in topic.partitions:
                    place = ("log", topic.name, each.partition_index, each.is_future_key)
                    self.found[place] = (PurePath(found.log_dir).name, int(found.error_code))


def _no(*what: str) -> dict[str, bool]:
    return {f"include_{each}_authorized_operations": False for each in what}


def _codes(value: Any) -> set[int]:
    """Return all error codes in an answer."""
    if isinstance(value, tuple):
        return set().union(*(_codes(each) for each in value))
    if not is_dataclass(value):
        return set()
    own = {int(getattr(value, each.name)) for each in fields(value) if each.name == "error_code"}
    return own.union(*(_codes(getattr(value, each.name)) for each in fields(value)))


def _plain(value: Any) -> Any:
    """Return an answer as dicts and lists, sorted: order is the broker's own."""
    if isinstance(value, tuple):
        return sorted((_plain(each) for each in value), key=repr)
    if is_dataclass(value):
        kept = (each.name for each in fields(value) if each.name not in _UNSTABLE)
        return {name: _plain(getattr(value, name)) for name in kept if not name.startswith("__")}
    return value
