"""Where Barnabas differs from Kafka's definitions of its messages and records, each with the reason."""

from __future__ import annotations

_LATER = "Kafka 4.4"

OLDER_VERSIONS = {
    ("4.4.0", "api_versions"): _LATER,
    ("4.4.0", "delete_groups"): _LATER,
    ("4.4.0", "streams_group_describe"): _LATER,
    ("4.4.0", "streams_group_heartbeat"): _LATER,
    ("4.4.0", "txn_offset_commit"): _LATER,
}
"""APIs of which Kafka serves a higher version."""

UNSERVED = {
    "AddRaftVoter": "there is one controller",
    "RemoveRaftVoter": "there is one controller",
    "UnregisterBroker": "there is one broker",
    "UnregisterController": _LATER,
    "StreamsGroupTopologyDescriptionUpdate": _LATER,
}
"""APIs of Kafka's brokers."""

UNREAD_RECORDS = {
    "AbortedTxn": "an entry of a transaction index, not a record",
    "BrokerRegistrationChange": "kept as raw bytes",
    "ConsumerGroupPartitionMetadataValue": "not written since Kafka 4.1, and read as nothing",
    "ControlRecordTypeSchema": "the key of a control record",
    "DefaultPrincipalData": "in forwarded requests only",
    "EndTxnMarker": "the value of a transaction marker",
    "FenceBroker": "kept as raw bytes",
    "LegacyOffsetCommitKey": "read as OffsetCommitKey, and written as that",
    "LegacyOffsetCommitValue": "version 0 of OffsetCommitValue",
    "NoOp": "kept as raw bytes",
    "ProducerSnapshot": "a file",
    "QuorumStateData": "a file, in JSON",
    "RegisterBroker": "kept as raw bytes",
    "RegisterController": "kept as raw bytes",
    "RemoteLogSegmentMetadata": "of a topic of tiered storage that Barnabas does not have",
    "RemoteLogSegmentMetadataSnapshot": "of a topic of tiered storage that Barnabas does not have",
    "RemoteLogSegmentMetadataUpdate": "of a topic of tiered storage that Barnabas does not have",
    "RemotePartitionDeleteMetadata": "of a topic of tiered storage that Barnabas does not have",
    "UnfenceBroker": "kept as raw bytes",
    "UnregisterBroker": "kept as raw bytes",
    "UnregisterController": _LATER,
    "ZkMigrationState": "kept as raw bytes",
}
"""Definitions that are neither requests nor answers; "Record" at the end of a name is left out."""

UNREAD_FIELDS = {
    ("StreamsGroupMetadataValue", "StoredDescriptionTopologyEpoch"): _LATER,
    ("StreamsGroupMetadataValue", "FailedDescriptionTopologyEpoch"): _LATER,
}
"""Fields of records, which are lost when Barnabas writes the record again."""

UNWRITTEN_VALUES = {
    ("ConsumerGroupMemberMetadataValue", "ClassicMemberMetadata"): "no tag means none; for Kafka, no timeout and no"
    " protocols, which it never writes",
    ("StreamsGroupCurrentMemberAssignmentValue", "AssignmentEpochs"): "of standby and warm-up tasks, which have none",
}
"""Fields that may have values which Kafka's coordinators never write."""
