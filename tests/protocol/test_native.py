"""The native dialect: every API's round trip, and what hostile bytes do to its decoders."""

from __future__ import annotations

import random
import struct
from typing import Any

import msgpack
import pytest

from barnabas.protocol.errors import BrokerError, DecodeError, ErrorCode
from barnabas.protocol.framing import NATIVE_MAGIC, FrameError, frame_size
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.api_versions import ApiVersionRange, ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.cluster.configs import (
    AlterConfigOp,
    AlterConfigsResource,
    AlterConfigsResult,
    ConfigEntry,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.protocol.messages.data.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)
from barnabas.protocol.messages.data.describe_producers import (
    ActiveProducer,
    DescribeProducersPartitionResult,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopic,
    DescribeProducersTopicResult,
)
from barnabas.protocol.messages.data.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchPartitionResult,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    FetchTopicResult,
)
from barnabas.protocol.messages.data.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.data.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResult,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResult,
)
from barnabas.protocol.messages.data.produce import (
    ProducePartition,
    ProducePartitionResult,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
    ProduceTopicResult,
)
from barnabas.protocol.messages.groups.consumer_group_describe import (
    CLASSIC_MEMBER,
    AssignedTopic,
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescription,
    ConsumerGroupMemberDescription,
)
from barnabas.protocol.messages.groups.describe_groups import (
    DescribedGroup,
    DescribedMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from barnabas.protocol.messages.groups.groups import (
    DeleteGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from barnabas.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.groups.join_group import (
    GroupProtocol,
    JoinedMember,
    JoinGroupRequest,
    JoinGroupResponse,
)
from barnabas.protocol.messages.groups.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeavingMember,
    LeftMember,
)
from barnabas.protocol.messages.groups.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitPartitionResult,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopic,
    OffsetCommitTopicResult,
)
from barnabas.protocol.messages.groups.offset_fetch import (
    OffsetFetchGroup,
    OffsetFetchGroupResult,
    OffsetFetchPartitionResult,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopic,
    OffsetFetchTopicResult,
)
from barnabas.protocol.messages.groups.sync_group import MemberAssignment, SyncGroupRequest, SyncGroupResponse
from barnabas.protocol.messages.nodes import BrokerAddress
from barnabas.protocol.messages.security.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from barnabas.protocol.messages.topics.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirsTopic,
    AlterReplicaLogDirsTopicResult,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsTopic,
    LogDirPartition,
    LogDirResult,
    LogDirTopic,
)
from barnabas.protocol.messages.topics.metadata import (
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)
from barnabas.protocol.messages.topics.topics import (
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    NewPartitions,
    NewTopic,
    config_rows,
)
from barnabas.protocol.messages.transactions.add_partitions_to_txn import TxnPartitionResult, TxnTopic, TxnTopicResult
from barnabas.protocol.messages.transactions.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionDescription,
)
from barnabas.protocol.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.transactions.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionListing,
)
from barnabas.protocol.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitPartition,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitTopic,
)
from barnabas.protocol.messages.transactions.write_txn_markers import (
    TxnMarker,
    TxnMarkerResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.protocol.native import codec
from barnabas.protocol.native.apis import NATIVE_APIS
from barnabas.protocol.native.frame import split_frame
from barnabas.protocol.uuids import random_uuid
from barnabas.protocol.wire.pieces import RecordBytes
from tests.support.own_exchanges import OWN_EXCHANGES

FENCED = TxnPartitionResult(partition=7, error=ErrorCode.INVALID_PRODUCER_EPOCH)
TOPIC: dict[str, Any] = {"name": "t", "topic_id": random_uuid(), "partitions": 3}

EXCHANGES: list[tuple[ApiKey, Any, Any]] = [
    (
        ApiKey.SASL_HANDSHAKE,
        SaslHandshakeRequest(mechanism="PLAIN"),
        SaslHandshakeResponse(
            error=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=["SCRAM-SHA-256", "SCRAM-SHA-512"]
        ),
    ),
    (
        ApiKey.SASL_AUTHENTICATE,
        SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"),
        SaslAuthenticateResponse(
            auth_bytes=b"v=", session_lifetime_ms=1 << 40, error=ErrorCode.SASL_AUTHENTICATION_FAILED
        ),
    ),
    (
        ApiKey.PRODUCE,
        ProduceRequest(
            acks=-1,
            timeout_ms=1000,
            topics=[
                ProduceTopic(
                    name="t",
                    partitions=[ProducePartition(0, memoryview(b"abc")), ProducePartition(7, memoryview(b""))],
                ),
                ProduceTopic(name="u", partitions=[ProducePartition(1, memoryview(b"de"))]),
            ],
            transactional_id="x",
        ),
        ProduceResponse(
            topics=[
                ProduceTopicResult(
                    name="t", partitions=[ProducePartitionResult(0, ErrorCode.CORRUPT_MESSAGE, message="why")]
                )
            ]
        ),
    ),
    (
        ApiKey.FETCH,
        FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation=1,
            topics=[FetchTopic(name="t", partitions=[FetchPartition(partition=0, offset=1 << 40, max_bytes=1 << 20)])],
        ),
        FetchResponse(
            topics=[
                FetchTopicResult(
                    name="t",
                    partitions=[
                        FetchPartitionResult(
                            partition=0,
                            error=ErrorCode.NONE,
                            high_watermark=9,
                            last_stable_offset=8,
                            log_start_offset=7,
                            aborted=[AbortedTransaction(producer_id=5, first_offset=6)],
                            records=RecordBytes(b"xyz"),
                        ),
                        FetchPartitionResult(partition=1, error=ErrorCode.OFFSET_OUT_OF_RANGE, aborted=[]),
                    ],
                )
            ]
        ),
    ),
    (
        ApiKey.LIST_OFFSETS,
        ListOffsetsRequest(
            isolation=1,
            topics=[ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(partition=0, timestamp=-2)])],
        ),
        ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResult(
                    name="t",
                    partitions=[
                        ListOffsetsPartitionResult(
                            partition=0, error=ErrorCode.NONE, offset=3, timestamp=4, leader_epoch=5
                        )
                    ],
                )
            ]
        ),
    ),
    (
        ApiKey.METADATA,
        MetadataRequest.of_names(["t"], allow_auto_creation=True),
        MetadataResponse(
            cluster_id="c",
            brokers=[BrokerAddress(1, "localhost", 9092)],
            topics=[
                TopicMetadata(
                    name="t",
                    topic_id=random_uuid(),
                    partitions=(PartitionMetadata(partition=0, leader=1, leader_epoch=2),),
                )
            ],
        ),
    ),
    (
        ApiKey.API_VERSIONS,
        ApiVersionsRequest(client="me", client_version="1"),
        ApiVersionsResponse(
            server="barnabas",
            server_version="0",
            cluster_id="c",
            node_id=1,
            apis=[ApiVersionRange(api=0, min_version=0, max_version=0)],
            max_frame_bytes=100,
        ),
    ),
    (
        ApiKey.DESCRIBE_PRODUCERS,
        DescribeProducersRequest(topics=[DescribeProducersTopic(name="t", partitions=[0, 3])], producer_id=7),
        DescribeProducersResponse(
            topics=[
                DescribeProducersTopicResult(
                    name="t",
                    partitions=[
                        DescribeProducersPartitionResult(
                            partition=0,
                            producers=[
                                ActiveProducer(
                                    producer_id=7,
                                    epoch=2,
                                    last_sequence=41,
                                    last_timestamp=1234,
                                    coordinator_epoch=-1,
                                    transaction_start_offset=-1,
                                )
                            ],
                        ),
                        DescribeProducersPartitionResult(
                            partition=3, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message="none", producers=[]
                        ),
                    ],
                )
            ]
        ),
    ),
    (
        ApiKey.INIT_PRODUCER_ID,
        InitProducerIdRequest(transactional_id="x", producer_id=1 << 40, producer_epoch=3, transaction_timeout_ms=9000),
        InitProducerIdResponse(producer_id=12345678901, producer_epoch=4),
    ),
    (
        ApiKey.INIT_PRODUCER_ID,
        InitProducerIdRequest(transactional_id="x", enable_2pc=True),
        InitProducerIdResponse(producer_id=1, producer_epoch=0),
    ),
    (
        ApiKey.CREATE_TOPICS,
        CreateTopicsRequest(
            topics=[NewTopic(name="t", partitions=3, replication_factor=1, configs=config_rows({"a": "b"}))],
            timeout_ms=9,
            validate_only=True,
        ),
        CreateTopicsResponse(topics=[CreatableTopicResult(**TOPIC, warning="warned")]),
    ),
    (
        ApiKey.DELETE_TOPICS,
        DeleteTopicsRequest(names=["t"], timeout_ms=9),
        DeleteTopicsResponse(topics=[DeletableTopicResult(**TOPIC)]),
    ),
    (
        ApiKey.CREATE_PARTITIONS,
        CreatePartitionsRequest(topics=[NewPartitions(name="t", count=4)], timeout_ms=9, validate_only=False),
        CreatePartitionsResponse(topics=[CreatePartitionsTopicResult(**TOPIC)]),
    ),
    (
        ApiKey.DESCRIBE_CONFIGS,
        DescribeConfigsRequest(
            resources=[DescribeConfigsResource(type=2, name="t", names=["a"])], include_documentation=True
        ),
        DescribeConfigsResponse(
            results=[
                DescribeConfigsResult(
                    type=2,
                    name="t",
                    entries=[
                        ConfigEntry(
                            name="a",
                            value=None,
                            source_code=4,
                            type_code=3,
                            documentation="doc",
                            read_only=True,
                            sensitive=True,
                        )
                    ],
                )
            ]
        ),
    ),
    (
        ApiKey.ALTER_CONFIGS,
        IncrementalAlterConfigsRequest(
            resources=[
                AlterConfigsResource(type=4, name="", operations=[AlterConfigOp(name="a", operation=0, value="b")])
            ],
            validate_only=True,
        ),
        IncrementalAlterConfigsResponse(
            results=[AlterConfigsResult(type=4, name="", error=ErrorCode.INVALID_CONFIG, message="no")]
        ),
    ),
    (
        ApiKey.DELETE_RECORDS,
        DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition=3, offset=-1)])],
            timeout_ms=9,
        ),
        DeleteRecordsResponse(
            topics=[
                DeleteRecordsTopicResult(
                    name="t",
                    partitions=[
                        DeleteRecordsPartitionResult(
                            partition=3, error=ErrorCode.OFFSET_OUT_OF_RANGE, message="no", low_watermark=-1
                        )
                    ],
                )
            ]
        ),
    ),
    (
        ApiKey.OFFSET_COMMIT,
        OffsetCommitRequest(
            group_id="g",
            topics=[
                OffsetCommitTopic(
                    name="t",
                    partitions=[OffsetCommitPartition(partition=0, offset=1 << 40, leader_epoch=3, metadata="m")],
                )
            ],
            generation=7,
            member_id="member",
        ),
        OffsetCommitResponse(
            topics=[OffsetCommitTopicResult(name="t", partitions=[OffsetCommitPartitionResult(0, ErrorCode.NONE)])]
        ),
    ),
    (
        ApiKey.OFFSET_FETCH,
        OffsetFetchRequest(
            groups=[OffsetFetchGroup(group_id="g", topics=[OffsetFetchTopic(name="t", partitions=[0, 2])])],
            require_stable=True,
        ),
        OffsetFetchResponse(
            groups=[
                OffsetFetchGroupResult(
                    group_id="g",
                    topics=[
                        OffsetFetchTopicResult(
                            name="t",
                            partitions=[
                                OffsetFetchPartitionResult(
                                    0, error=ErrorCode.NONE, offset=1 << 40, leader_epoch=3, metadata="m"
                                )
                            ],
                        )
                    ],
                    error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                )
            ]
        ),
    ),
    (
        ApiKey.LIST_GROUPS,
        ListGroupsRequest(states=["Empty"], types=["classic"]),
        ListGroupsResponse(
            groups=[ListedGroup(group_id="g", protocol_type="consumer", state="Stable", type="classic")]
        ),
    ),
    (
        ApiKey.DELETE_GROUPS,
        DeleteGroupsRequest(group_ids=["g"]),
        DeleteGroupsResponse(results=[DeleteGroupResult(group_id="g", error=ErrorCode.NON_EMPTY_GROUP)]),
    ),
    (
        ApiKey.JOIN_GROUP,
        JoinGroupRequest(
            group_id="g",
            session_timeout_ms=45000,
            sent_rebalance_timeout_ms=300000,
            member_id="m",
            group_instance_id="i",
            protocol_type="consumer",
            protocols=[GroupProtocol(name="range", metadata=b"\0\1")],
        ),
        JoinGroupResponse(
            member_id="m",
            generation=3,
            protocol_type="consumer",
            protocol="range",
            leader="m",
            skip_assignment=True,
            members=[
                JoinedMember(member_id="m", metadata=b"\0"),
                JoinedMember(member_id="n", group_instance_id="i", metadata=b""),
            ],
        ),
    ),
    (
        ApiKey.SYNC_GROUP,
        SyncGroupRequest(
            group_id="g",
            generation=3,
            member_id="m",
            protocol_type="consumer",
            protocol="range",
            assignments=[
                MemberAssignment(member_id="m", assignment=b"\0\0"),
                MemberAssignment(member_id="n", assignment=b""),
            ],
        ),
        SyncGroupResponse(protocol_type="consumer", assignment=b"\0\0"),
    ),
    (
        ApiKey.HEARTBEAT,
        HeartbeatRequest(group_id="g", generation=3, member_id="m", group_instance_id="i"),
        HeartbeatResponse(error=ErrorCode.REBALANCE_IN_PROGRESS),
    ),
    (
        ApiKey.LEAVE_GROUP,
        LeaveGroupRequest(
            group_id="g",
            members=[
                LeavingMember(member_id="m", reason="gone"),
                LeavingMember(member_id="", group_instance_id="i"),
            ],
        ),
        LeaveGroupResponse(
            members=[
                LeftMember(member_id="m", group_instance_id=None),
                LeftMember(member_id="", group_instance_id="i", error=ErrorCode.UNKNOWN_MEMBER_ID),
            ]
        ),
    ),
    (
        ApiKey.DESCRIBE_GROUPS,
        DescribeGroupsRequest(groups=["g"]),
        DescribeGroupsResponse(
            groups=[
                DescribedGroup(
                    group_id="g",
                    state="Stable",
                    protocol_type="consumer",
                    protocol="range",
                    members=[
                        DescribedMember(
                            member_id="m",
                            group_instance_id="i",
                            client_id="c",
                            client_host="/127.0.0.1",
                            metadata=b"\0",
                            assignment=b"\1",
                        )
                    ],
                ),
                DescribedGroup(
                    group_id="h",
                    state="Dead",
                    members=[],
                    error=ErrorCode.GROUP_ID_NOT_FOUND,
                    message="there is no group h",
                ),
            ]
        ),
    ),
    (
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        ConsumerGroupDescribeRequest(group_ids=["g"]),
        ConsumerGroupDescribeResponse(
            groups=[
                ConsumerGroupDescription(
                    group_id="g",
                    state="Reconciling",
                    group_epoch=4,
                    assignment_epoch=3,
                    assignor="uniform",
                    members=[
                        ConsumerGroupMemberDescription(
                            member_id="m",
                            rack_id="r",
                            member_epoch=2,
                            client_id="c",
                            client_host="/127.0.0.1",
                            topic_names=["t"],
                            topic_regex="t.*",
                            assignment=Assignment(
                                topics=[AssignedTopic(topic_id=b"\1" * 16, topic="t", partitions=[0, 2])]
                            ),
                            target=Assignment(topics=[]),
                            member_type=CLASSIC_MEMBER,
                        )
                    ],
                ),
                ConsumerGroupDescription(
                    group_id="h", state="Dead", members=[], error=ErrorCode.GROUP_ID_NOT_FOUND, message="none"
                ),
            ]
        ),
    ),
    (
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        AlterReplicaLogDirsRequest(
            dirs=[AlterReplicaLogDir(path="/a", topics=[AlterReplicaLogDirsTopic(name="t", partitions=[0, 2])])]
        ),
        AlterReplicaLogDirsResponse(
            topics=[
                AlterReplicaLogDirsTopicResult(
                    name="t",
                    partitions=[AlterReplicaLogDirsPartitionResult(partition=0, error=ErrorCode.NONE, message=None)],
                )
            ]
        ),
    ),
    (
        ApiKey.DESCRIBE_LOG_DIRS,
        DescribeLogDirsRequest(topics=[DescribeLogDirsTopic(name="t", partitions=[1])]),
        DescribeLogDirsResponse(
            results=[
                LogDirResult(
                    path="/a",
                    error=ErrorCode.NONE,
                    topics=[
                        LogDirTopic(
                            name="t",
                            partitions=[
                                LogDirPartition(
                                    partition=1,
                                    size_bytes=1 << 40,
                                    offset_lag=7,
                                    is_future=True,
                                    first_dirty_offset=12,
                                    dirty_ratio=0.25,
                                    cleaning_state="idle",
                                )
                            ],
                        )
                    ],
                    total_bytes=3,
                    usable_bytes=2,
                ),
                LogDirResult(path="/b", error=ErrorCode.KAFKA_STORAGE_ERROR),
            ]
        ),
    ),
    (
        ApiKey.END_TXN,
        EndTxnRequest(transactional_id="x", producer_id=1 << 40, producer_epoch=3, is_commit=True),
        EndTxnResponse(error=ErrorCode.NONE, producer_id=1 << 40, producer_epoch=4),
    ),
    (
        ApiKey.TXN_OFFSET_COMMIT,
        TxnOffsetCommitRequest(
            transactional_id="x",
            group_id="g",
            producer_id=1 << 40,
            producer_epoch=3,
            topics=[
                TxnOffsetCommitTopic(
                    name="t",
                    partitions=[TxnOffsetCommitPartition(partition=0, offset=1 << 41, leader_epoch=2, metadata="m")],
                )
            ],
            generation=6,
            member_id="member",
            group_instance_id="i",
        ),
        TxnOffsetCommitResponse(
            topics=[
                OffsetCommitTopicResult(
                    name="t", partitions=[OffsetCommitPartitionResult(0, ErrorCode.UNSTABLE_OFFSET_COMMIT)]
                )
            ]
        ),
    ),
    (
        ApiKey.WRITE_TXN_MARKERS,
        WriteTxnMarkersRequest(
            markers=[
                TxnMarker(
                    producer_id=1 << 40,
                    producer_epoch=3,
                    is_commit=False,
                    topics=[TxnTopic(name="t", partitions=[0, 7])],
                    coordinator_epoch=5,
                    transaction_version=2,
                )
            ]
        ),
        WriteTxnMarkersResponse(
            markers=[
                TxnMarkerResult(
                    producer_id=1 << 40,
                    topics=[TxnTopicResult(name="t", partitions=[TxnPartitionResult(partition=0), FENCED])],
                )
            ]
        ),
    ),
    (
        ApiKey.LIST_TRANSACTIONS,
        ListTransactionsRequest(
            states=["Ongoing"], producer_ids=[7], duration_ms=60_000, transactional_id_pattern="x.*"
        ),
        ListTransactionsResponse(
            transactions=[TransactionListing(transactional_id="x", producer_id=7, state="Ongoing")],
            unknown_states=["Odd"],
            error=ErrorCode.NONE,
        ),
    ),
    *(each for each in OWN_EXCHANGES if each[0] is not ApiKey.CLEANING),
    (
        ApiKey.DESCRIBE_TRANSACTIONS,
        DescribeTransactionsRequest(transactional_ids=["x", "y"]),
        DescribeTransactionsResponse(
            transactions=[
                TransactionDescription(
                    transactional_id="x",
                    error=ErrorCode.NONE,
                    state="Ongoing",
                    timeout_ms=60_000,
                    start_time_ms=1 << 40,
                    producer_id=7,
                    producer_epoch=3,
                    topics=[TxnTopic(name="t", partitions=[0])],
                ),
                TransactionDescription(transactional_id="y", error=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND),
            ]
        ),
    ),
]


def request_frame(api: ApiKey, request: Any) -> bytearray:
    return bytearray(b"".join(codec.encode_request(api, 42, "me", request))[4:])


def response_frame(api: ApiKey, request: Any, response: Any) -> bytearray:
    header = codec.read_request(memoryview(request_frame(api, request)))
    records = b""
    if isinstance(response, FetchResponse):
        records = b"".join(each.data for topic in response.topics for each in topic.partitions)
    return bytearray(codec.encode_response(header, response, len(records))[4:] + records)


def decode_request(frame: memoryview) -> Any:
    header = codec.read_request(frame)
    return codec.decode_body(header) if codec.is_supported(header) else None


def test_every_api_has_an_exchange_here() -> None:
    assert {api for api, _, _ in EXCHANGES} == set(NATIVE_APIS) <= set(ApiKey)


@pytest.mark.parametrize(("api", "request_", "response"), EXCHANGES, ids=[api.label for api, _, _ in EXCHANGES])
def test_requests_and_answers_survive_a_round_trip(api: ApiKey, request_: Any, response: Any) -> None:
    header = codec.read_request(memoryview(request_frame(api, request_)))
    assert (header.api, header.version, header.correlation_id, header.client_id) == (api, 0, 42, "me")
    assert codec.is_supported(header) == (api in NATIVE_APIS)
    assert codec.decode_body(header) == request_
    answer = codec.read_response(memoryview(response_frame(api, request_, response)))
    assert (answer.api, answer.correlation_id, answer.error, answer.message) == (api, 42, ErrorCode.NONE, None)
    assert codec.decode_response(answer) == response


@pytest.mark.parametrize(
    ("api", "number"),
    [
        (ApiKey.MIRRORS, 1000),
        (ApiKey.STANDBY, 1001),
        (ApiKey.EXPLAIN_GROUP, 1003),
        (ApiKey.EXPLAIN_START, 1004),
        (ApiKey.EXPLAIN_TOPIC, 1005),
        (ApiKey.FETCH, 1),
    ],
)
def test_barnabas_own_apis_keep_their_numbers_for_brokers_and_clients_of_mixed_versions(
    api: ApiKey, number: int
) -> None:
    request_, response = next((request, response) for key, request, response in EXCHANGES if key == api)
    request_header = codec.read_request(memoryview(request_frame(api, request_)))
    hello = ApiVersionsResponse(
        server="b",
        server_version="1",
        cluster_id="c",
        node_id=1,
        apis=[ApiVersionRange(api=api, min_version=0, max_version=0)],
        max_frame_bytes=1,
    )
    greeted = response_frame(ApiKey.API_VERSIONS, ApiVersionsRequest(client="t", client_version="1"), hello)
    for frame in (
        request_frame(api, request_),
        response_frame(api, request_, response),
        codec.encode_error(request_header, ErrorCode.INVALID_REQUEST, "no")[4:],
    ):
        header, _ = split_frame(memoryview(frame))
        assert header[0] == number
    header, _ = split_frame(memoryview(greeted))
    assert header[4]["apis"] == [[number, 0, 0]]
    assert codec.decode_response(codec.read_response(memoryview(greeted))).apis[0].api == api


@pytest.mark.parametrize(("api", "request_", "response"), EXCHANGES, ids=[api.label for api, _, _ in EXCHANGES])
def test_mutated_frames_raise_decode_errors_and_nothing_else(api: ApiKey, request_: Any, response: Any) -> None:
    seed = f"native-{api.label}"
    generator = random.Random(seed)
    for original, read in (
        (request_frame(api, request_), decode_request),
        (response_frame(api, request_, response), lambda frame: codec.decode_response(codec.read_response(frame))),
    ):
        for turn in range(1500):
            frame = bytearray(original)
            for _ in range(generator.randint(1, 4)):
                frame[generator.randrange(len(frame))] = generator.randrange(256)
            if generator.random() < 0.3:
                del frame[generator.randrange(1, len(frame)) :]
            try:
                read(memoryview(frame))
            except DecodeError:
                continue
            except Exception as error:
                error.add_note(f"seed {seed} turn {turn}")
                raise


def test_fields_that_are_missing_or_wrong_are_named() -> None:
    cases: list[tuple[ApiKey, Any, str]] = [
        (ApiKey.FETCH, {}, "topics is missing"),
        (ApiKey.FETCH, {"topics": 5}, "topics is of type int, not an array"),
        (ApiKey.FETCH, {"topics": [["t", [[0, 1]]]]}, "partitions[] is an array of 2 values"),
        (ApiKey.FETCH, {"topics": [], "max_bytes": -1}, "max_bytes=-1 is outside"),
        (ApiKey.FETCH, {"topics": [], "isolation": 2}, "isolation=2 is outside"),
        (ApiKey.PRODUCE, {"acks": True, "topics": []}, "acks is of type bool"),
        (ApiKey.PRODUCE, {"acks": 1, "topics": [["t", [[0, 5]]]]}, "the sizes add up to more than the 0 bytes"),
        (ApiKey.PRODUCE, {"acks": 1, "topics": [["t", [[0, -5]]]]}, "size=-5 is outside"),
        (ApiKey.METADATA, {"topics": [b"raw"]}, "topics[] is of type bytes"),
        (ApiKey.LEAVE_GROUP, {"group": "\u20ac" * 20000, "members": []}, "group has more than 32767 bytes as UTF-8"),
        (
            ApiKey.JOIN_GROUP,
            {"group": "g", "protocol_type": "consumer", "protocols": [["range", "text"]]},
            "metadata is of type str, not binary",
        ),
        (ApiKey.LIST_OFFSETS, [], "body is an array of 0 values, not a map"),
    ]
    for api, body, sentence in cases:
        packed = msgpack.packb([int(api), 0, 1, None, body])
        header = codec.read_request(memoryview(struct.pack(">I", NATIVE_MAGIC << 24 | len(packed)) + packed))
        with pytest.raises(DecodeError, match=r".") as caught:
            codec.decode_body(header)
        assert sentence in str(caught.value)


def test_records_after_the_body_of_an_api_without_records_are_refused() -> None:
    packed = msgpack.packb([3, 0, 1, None, {}])
    frame = struct.pack(">I", NATIVE_MAGIC << 24 | len(packed)) + packed + b"stray"
    with pytest.raises(DecodeError, match="5 bytes follow the header"):
        codec.decode_body(codec.read_request(memoryview(frame)))


@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        (b"\xb7\x00", "no header size"),
        (b"\x50OST", "magic 0x50"),
        (b"\xb7\x00\x00\x05abc", "longer than its frame"),
        (b"\xb7\x00\x00\x01\xc1", "not msgpack"),
        (b"\xb7\x00\x00\x02\x90\x90", "not msgpack"),
        (b"\xb7\x00\x00\x01\x90", "not an array of 5"),
        (b"\xb7\x00\x00\x06\x95\xc0\x00\x00\xc0\x80", "does not begin with the integers"),
        (b"\xb7\x00\x00\x06\x95\x00\x00\x00\x07\x80", "client_id"),
        (b"\xb7\x00\x20\x08\x95\x00\x00\x00\xda\x20\x00" + b"x" * 8192 + b"\x80", "client_id has 8192"),
    ],
)
def test_broken_framing_is_a_frame_error(frame: bytes, sentence: str) -> None:
    with pytest.raises(FrameError, match=sentence):
        codec.read_request(memoryview(frame))


@pytest.mark.parametrize(("size", "sentence"), [(0, "not positive"), (-7, "not positive"), (101, "above socket")])
def test_an_impossible_frame_size_is_refused(size: int, sentence: str) -> None:
    with pytest.raises(FrameError, match=sentence):
        frame_size(bytearray(struct.pack(">i", size)), 0, 100)
    assert frame_size(bytearray(struct.pack(">i", 100)), 0, 100) == 100


def test_keys_from_the_future_are_ignored() -> None:
    packed = msgpack.packb([3, 0, 1, None, {"topics": None, "novelty": [1]}])
    header = codec.read_request(memoryview(struct.pack(">I", NATIVE_MAGIC << 24 | len(packed)) + packed))
    assert codec.decode_body(header) == MetadataRequest.of_names(None)


def test_a_requests_header_is_limited_and_an_answers_is_not() -> None:
    padding = "x" * (3 << 20)
    request = b"".join(
        codec.encode_request(ApiKey.API_VERSIONS, 1, None, ApiVersionsRequest(client=padding, client_version=""))
    )
    with pytest.raises(FrameError, match="is above 2097152"):
        codec.read_request(memoryview(request)[4:])
    header = codec.RequestHeader(ApiKey.METADATA, 0, 1, None, {}, memoryview(b""))
    answer = codec.encode_response(header, MetadataResponse(cluster_id=padding), 0)
    assert codec.read_response(memoryview(answer)[4:]).body["cluster_id"] == padding


def test_an_answer_too_large_for_its_size_fields_is_refused() -> None:
    header = codec.RequestHeader(ApiKey.METADATA, 0, 1, None, {}, memoryview(b""))
    with pytest.raises(BrokerError, match="ask for less at a time") as refused:
        codec.encode_response(header, MetadataResponse(cluster_id="x" * (1 << 24)), 0)
    assert refused.value.code == ErrorCode.INVALID_REQUEST
    with pytest.raises(BrokerError):
        codec.encode_response(header, MetadataResponse(cluster_id="x"), 1 << 31)
