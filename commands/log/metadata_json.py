"""Records of the metadata log as JSON for `barnabas log dump`, in the form of Kafka's `--cluster-metadata-decoder`.

    {"type": "TOPIC_RECORD", "version": 0, "data": {"name": "orders", "topicId": "..."}}

Field names and their order are those of Kafka's generated JSON converters; a tagged field with its default is left out.
Salts and keys of SCRAM credentials are hidden, unlike in Kafka's tool. A record of an unsupported type keeps its type's
name, with its bytes as base64 in `data`. Control records have their own JSON.
Source: Kafka MetadataJsonConverters, DumpLogSegments.
"""

from __future__ import annotations

import base64
import re
from typing import Any

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.metadata.control import (
    ControlRecord,
    KRaftVersion,
    KRaftVoters,
    LeaderChange,
    SnapshotFooter,
    SnapshotHeader,
    Voter,
    decode_control,
)
from barnabas.protocol.metadata.frame import RECORD_NAMES, decode_frame
from barnabas.protocol.metadata.partition_state import NO_LEADER_CHANGE, RECOVERY_UNCHANGED
from barnabas.protocol.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ClearElrRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnknownRecord,
)
from barnabas.protocol.primitives import Reader
from barnabas.protocol.records.record import Record
from barnabas.protocol.uuids import uuid_text
from barnabas.protocol.wire.plain import plain

_END_MARKERS = {0: "ABORT", 1: "COMMIT"}
_COORDINATOR_EPOCH = slice(2, 6)
"""An end marker's value: int16 version, int32 coordinator epoch."""


def metadata_json(value: bytes | None) -> dict[str, Any]:
    """Convert one metadata record's value to JSON. Raises DecodeError."""
    if value is None:
        raise DecodeError("a metadata record has a value")
    record = decode_frame(value)
    head = Reader(value)
    _, key, version = head.unsigned_varint(), head.unsigned_varint(), head.unsigned_varint()
    name = RECORD_NAMES.get(key)
    type_name = f"UNKNOWN_{key}_RECORD" if name is None else f"{_upper_snake(name)}_RECORD"
    return {"type": type_name, "version": version, "data": _data(record, version)}


def control_fields(record: Record) -> dict[str, Any]:
    """Decode a control record: an end marker's two fields, or one field with the record's name. Raises DecodeError."""
    key = record.key or b""
    control_type = int.from_bytes(key[2:4], "big", signed=True) if len(key) >= 4 else -1
    if control_type in _END_MARKERS:
        epoch = int.from_bytes((record.value or b"")[_COORDINATOR_EPOCH], "big", signed=True)
        return {"endTxnMarker": _END_MARKERS[control_type], "coordinatorEpoch": epoch}
    control = decode_control(record.key, record.value)
    version = int.from_bytes((record.value or b"")[:2], "big", signed=True)
    name = type(control).__name__
    if name == "UnknownControl":
        return {"controlType": control_type}
    return {name: {"version": version, **_control_data(control)}}


def _upper_snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()


def _data(record: MetadataRecord, version: int) -> Any:
    match record:
        case TopicRecord(name, topic_id):
            return {"name": name, "topicId": uuid_text(topic_id)}
        case PartitionRecord():
            return _partition(record, version)
        case PartitionChangeRecord():
            return _partition_change(record)
        case ConfigRecord(resource_type, resource_name, name, value):
            return {"resourceType": resource_type, "resourceName": resource_name, "name": name, "value": value}
        case RemoveTopicRecord(topic_id):
            return {"topicId": uuid_text(topic_id)}
        case FeatureLevelRecord(name, level):
            return {"name": name, "featureLevel": level}
        case ProducerIdsRecord(broker_id, broker_epoch, next_producer_id):
            return {"brokerId": broker_id, "brokerEpoch": broker_epoch, "nextProducerId": next_producer_id}
        case BeginTransactionRecord(text):
            return {} if text is None else {"name": text}
        case AbortTransactionRecord(text):
            return {} if text is None else {"reason": text}
        case EndTransactionRecord():
            return {}
        case ClearElrRecord(topic):
            return {"topicName": topic}
        case UnknownRecord(_, _, body):
            return base64.b64encode(body).decode("ascii")
        case _:
            return plain(record, version)


def _partition(record: PartitionRecord, version: int) -> dict[str, Any]:
    state = record.state
    data: dict[str, Any] = {
        "partitionId": record.partition,
        "topicId": uuid_text(record.topic_id),
        "replicas": list(state.replicas),
        "isr": list(state.isr),
        "removingReplicas": list(state.removing),
        "addingReplicas": list(state.adding),
        "leader": state.leader,
    }
    if state.leader_recovery_state:
        data["leaderRecoveryState"] = state.leader_recovery_state
    data["leaderEpoch"] = state.leader_epoch
    data["partitionEpoch"] = state.partition_epoch
    if version >= 1:
        data["directories"] = [uuid_text(directory) for directory in state.directories]
    _put_lists(data, eligibleLeaderReplicas=state.eligible_leaders, lastKnownElr=state.last_known_eligible)
    return data


def _partition_change(record: PartitionChangeRecord) -> dict[str, Any]:
    delta = record.delta
    data: dict[str, Any] = {"partitionId": record.partition, "topicId": uuid_text(record.topic_id)}
    _put_lists(data, isr=delta.isr)
    if delta.leader != NO_LEADER_CHANGE:
        data["leader"] = delta.leader
    _put_lists(data, replicas=delta.replicas, removingReplicas=delta.removing, addingReplicas=delta.adding)
    if delta.leader_recovery_state != RECOVERY_UNCHANGED:
        data["leaderRecoveryState"] = delta.leader_recovery_state
    _put_lists(data, eligibleLeaderReplicas=delta.eligible_leaders, lastKnownElr=delta.last_known_eligible)
    if delta.directories is not None:
        data["directories"] = [uuid_text(directory) for directory in delta.directories]
    return data


def _put_lists(data: dict[str, Any], **lists: tuple[int, ...] | None) -> None:
    data.update({name: list(nodes) for name, nodes in lists.items() if nodes is not None})


def _control_data(record: ControlRecord) -> dict[str, Any]:
    match record:
        case LeaderChange():
            return {
                "leaderId": record.leader_id,
                "voters": [_voter(voter, record.version) for voter in record.voters],
                "grantingVoters": [_voter(voter, record.version) for voter in record.granting_voters],
            }
        case SnapshotHeader(timestamp):
            return {"lastContainedLogTimestamp": timestamp}
        case KRaftVersion(level):
            return {"kRaftVersion": level}
        case KRaftVoters(voters):
            return {
                "voters": [
                    {
                        "voterId": voter.node_id,
                        "voterDirectoryId": uuid_text(voter.directory_id),
                        "endpoints": [{"name": e.name, "host": e.host, "port": e.port} for e in voter.endpoints],
                        "kRaftVersionFeature": {
                            "minSupportedVersion": voter.supported[0],
                            "maxSupportedVersion": voter.supported[1],
                        },
                    }
                    for voter in voters
                ]
            }
        case SnapshotFooter():
            return {}
        case _:
            return {"value": base64.b64encode(record.value).decode("ascii")}


def _voter(voter: Voter, version: int) -> dict[str, Any]:
    if version < 1:
        return {"voterId": voter.node_id}
    return {"voterId": voter.node_id, "voterDirectoryId": uuid_text(voter.directory_id)}
