"""Requests and answers of Barnabas' own APIs, as round trips compare them."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.explain_start import (
    ApiLatency,
    ClientMetric,
    ExplainStartRequest,
    ExplainStartResponse,
    RecoveredLog,
    StartedDirectory,
    TaskRuns,
)
from barnabas.protocol.messages.cluster.mirrors import (
    MirrorAction,
    MirrorDescription,
    MirroredPartition,
    MirroredTopic,
    MirrorProblem,
    MirrorsRequest,
    MirrorsResponse,
    PromotedPartition,
    definition_fields,
)
from barnabas.protocol.messages.cluster.standby import (
    PartitionEnd,
    SnapshotName,
    StandbyAction,
    StandbyIdentity,
    StandbyRequest,
    StandbyResponse,
)
from barnabas.protocol.messages.groups.explain_group import (
    Deletion,
    ExplainGroupRequest,
    ExplainGroupResponse,
    GroupEvent,
    MemberTiming,
    PartitionLag,
)
from barnabas.protocol.messages.topics.cleaning import CleaningRequest, CleaningResponse, CompactedLog
from barnabas.protocol.messages.topics.explain_topic import (
    ExplainedCompaction,
    ExplainedCopy,
    ExplainedPartition,
    ExplainedSegment,
    ExplainTopicRequest,
    ExplainTopicResponse,
    SettingValue,
)

OWN_EXCHANGES: list[tuple[ApiKey, Any, Any]] = [
    (
        ApiKey.MIRRORS,
        MirrorsRequest(
            action=MirrorAction.ALTER,
            names=["east"],
            definition=definition_fields({"topics": ["a.*"], "keep_cut": True, "start": "7"}),
            releases_topics=True,
        ),
        MirrorsResponse(
            mirrors=[
                MirrorDescription(
                    name="east",
                    definition=definition_fields(
                        {"bootstrap": ["h:9092"], "command_config": None, "max_bytes_per_second": 1}
                    ),
                    state="running",
                    error="the source is unreachable",
                    topics=[MirroredTopic("a", "mirrored", "x" * 22), MirroredTopic("b", "failed")],
                    partitions=[
                        MirroredPartition("a", 0, "copying", 1 << 40, (1 << 40) + 1, 1, 0.5),
                        MirroredPartition("b", 1, "failed", 0, error="no right to READ", lag_bytes=1 << 40),
                    ],
                    problems=[MirrorProblem("c", "exists here")],
                    promoted=[PromotedPartition("p", 2, 1 << 40, 3, (1 << 40) + 1, 4, 1, 0, 2)],
                )
            ],
            released=["d"],
        ),
    ),
    (
        ApiKey.EXPLAIN_START,
        ExplainStartRequest(client_metrics=True),
        ExplainStartResponse(
            began_ms=1 << 41,
            loaded_ms=1 << 41,
            ready_ms=1 << 41,
            booted_ms=None,
            directories=[StartedDirectory("/d", False, 1 << 41, 7, 0.5)],
            recovered_logs=3,
            recovered_bytes=1 << 40,
            logs=[RecoveredLog("t", 0, "/d", 0.25, 2, 1 << 40, 1, 99)],
            tasks=[TaskRuns("retention", 2, 1, 0.5, 1 << 41, None), TaskRuns("flush", 0, 0, 0.0, None, 1 << 41)],
            latency_bounds_seconds=[0.5, 1.0],
            latencies=[ApiLatency("produce", 3, 0.5, [1, 1 << 40, 0])],
            client_metrics_total=2,
            client_metrics=[ClientMetric("c", "i", "m", "", 1.0), ClientMetric("", "i", "m", "a=b", -0.5)],
        ),
    ),
    (
        ApiKey.EXPLAIN_TOPIC,
        ExplainTopicRequest(topic="t", partition=3),
        ExplainTopicResponse(
            now_ms=1 << 41,
            settings=[SettingValue("retention.ms", "5", "DYNAMIC_TOPIC_CONFIG", "topic t")],
            layers=[],
            partitions=[
                ExplainedPartition(
                    3,
                    "/d",
                    7,
                    1 << 40,
                    1 << 41,
                    9,
                    77,
                    None,
                    [
                        ExplainedSegment(
                            7, 9, 1 << 40, 1 << 41, -1, None, 1 << 41, None, "retention.ms", ("a", "b"), 5
                        ),
                        ExplainedSegment(9, 9, 0, -1, -1, 1 << 41, None, 1 << 41, None, (), None),
                    ],
                    ExplainedCompaction(7, 9, 1, 2, 0.5, None, 1 << 41, ("dirty_ratio",), None, 0.25, None, 1 << 40),
                    2,
                    1 << 40,
                    ExplainedCopy("/e", 1 << 41),
                ),
                ExplainedPartition(4, "/d", 0, 0, 0, 0, 0, 300, []),
            ],
        ),
    ),
    (
        ApiKey.EXPLAIN_TOPIC,
        ExplainTopicRequest(topic="t", setting="retention.ms"),
        ExplainTopicResponse(
            now_ms=1 << 41,
            partitions=[],
            settings=[SettingValue("n", "x", "DYNAMIC_TOPIC_CONFIG", "default", "not a long")],
            layers=[SettingValue("n", None, "DEFAULT_CONFIG", "default")],
        ),
    ),
    (
        ApiKey.EXPLAIN_GROUP,
        ExplainGroupRequest(group_id="g"),
        ExplainGroupResponse(
            now_ms=1 << 41,
            state="Stable",
            group_type="Classic",
            state_since_ms=None,
            members=[MemberTiming("m", None, "c", "h", 45_000, 44_000, "join", None)],
            partitions=[
                PartitionLag("t", 0, 5, 1 << 41, 3, 1 << 40, 77, 1 << 41, [Deletion(9, 1 << 41, None, "retention.ms")])
            ],
            events=[GroupEvent(1 << 41, "joined", "m", "c", "h", "why")],
            problems=["a config is not understood"],
        ),
    ),
    (
        ApiKey.STANDBY,
        StandbyRequest(
            action=StandbyAction.METADATA,
            offset=1 << 40,
            last_crc=0xFFFFFFFF,
            max_wait_ms=500,
            snapshot=SnapshotName(7, 3),
            number=2,
        ),
        StandbyResponse(
            identity=StandbyIdentity("c" * 22, 1, (b"d" * 16, b"e" * 16), 2, b"checkpoint"),
            end_offset=1 << 40,
            data=b"batches",
            snapshot=SnapshotName(1 << 40, 3),
            is_other_log=True,
            ends=[PartitionEnd("t", 0, 1 << 40)],
        ),
    ),
    (
        ApiKey.STANDBY,
        StandbyRequest(action=StandbyAction.IDENTIFY),
        StandbyResponse(error=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ends=[]),
    ),
    (
        ApiKey.CLEANING,
        CleaningRequest(topics=["t"]),
        CleaningResponse(
            logs=[CompactedLog("/d", "t", 0, -1, 0.25, "idle"), CompactedLog("/d", "t", 1, 1 << 40, -1.0, "paused")]
        ),
    ),
    (ApiKey.CLEANING, CleaningRequest(), CleaningResponse(error=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)),
]
