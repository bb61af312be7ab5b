"""Which native APIs there are, and how each one's requests and answers become a body and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.native import (
    configs,
    delete_records,
    describe_producers,
    fetch,
    group_membership,
    groups,
    hello,
    init_producer_id,
    list_offsets,
    log_dirs,
    metadata,
    produce,
    topics,
)

_Body = dict[str, Any]


class NativeApi(NamedTuple):
    """How one API's requests and answers become a body and back. The decoders also get the records behind it."""

    encode_request: Callable[[Any], _Body]
    decode_request: Callable[[_Body, memoryview], Any]
    encode_response: Callable[[Any], _Body]
    decode_response: Callable[[_Body, memoryview], Any]


def _bare(decode: Callable[[_Body], Any]) -> Callable[[_Body, memoryview], Any]:
    """A decoder of a body that has no records behind it."""

    def checked(body: _Body, records: memoryview) -> Any:
        if len(records):
            raise DecodeError(f"{len(records)} bytes follow the header of an API that has no records")
        return decode(body)

    return checked


NATIVE_APIS: dict[int, NativeApi] = {
    ApiKey.PRODUCE: NativeApi(
        produce.encode_request, produce.decode_request, produce.encode_response, _bare(produce.decode_response)
    ),
    ApiKey.FETCH: NativeApi(
        fetch.encode_request, _bare(fetch.decode_request), fetch.encode_response, fetch.decode_response
    ),
    ApiKey.LIST_OFFSETS: NativeApi(
        list_offsets.encode_request,
        _bare(list_offsets.decode_request),
        list_offsets.encode_response,
        _bare(list_offsets.decode_response),
    ),
    ApiKey.METADATA: NativeApi(
        metadata.encode_request,
        _bare(metadata.decode_request),
        metadata.encode_response,
        _bare(metadata.decode_response),
    ),
    ApiKey.API_VERSIONS: NativeApi(
        hello.encode_request, _bare(hello.decode_request), hello.encode_response, _bare(hello.decode_response)
    ),
    ApiKey.CREATE_TOPICS: NativeApi(
        topics.encode_create_topics,
        _bare(topics.decode_create_topics),
        topics.encode_response,
        _bare(topics.decode_response),
    ),
    ApiKey.DELETE_TOPICS: NativeApi(
        topics.encode_delete_topics,
        _bare(topics.decode_delete_topics),
        topics.encode_response,
        _bare(topics.decode_response),
    ),
    ApiKey.DELETE_RECORDS: NativeApi(
        delete_records.encode_request,
        _bare(delete_records.decode_request),
        delete_records.encode_response,
        _bare(delete_records.decode_response),
    ),
    ApiKey.INIT_PRODUCER_ID: NativeApi(
        init_producer_id.encode_request,
        _bare(init_producer_id.decode_request),
        init_producer_id.encode_response,
        _bare(init_producer_id.decode_response),
    ),
    ApiKey.CREATE_PARTITIONS: NativeApi(
        topics.encode_create_partitions,
        _bare(topics.decode_create_partitions),
        topics.encode_response,
        _bare(topics.decode_response),
    ),
    ApiKey.DESCRIBE_CONFIGS: NativeApi(
        configs.encode_describe,
        _bare(configs.decode_describe),
        configs.encode_describe_response,
        _bare(configs.decode_describe_response),
    ),
    ApiKey.ALTER_CONFIGS: NativeApi(
        configs.encode_alter,
        _bare(configs.decode_alter),
        configs.encode_alter_response,
        _bare(configs.decode_alter_response),
    ),
    ApiKey.OFFSET_COMMIT: NativeApi(
        groups.encode_commit,
        _bare(groups.decode_commit),
        groups.encode_commit_response,
        _bare(groups.decode_commit_response),
    ),
    ApiKey.OFFSET_FETCH: NativeApi(
        groups.encode_fetch,
        _bare(groups.decode_fetch),
        groups.encode_fetch_response,
        _bare(groups.decode_fetch_response),
    ),
    ApiKey.JOIN_GROUP: NativeApi(
        group_membership.encode_join,
        _bare(group_membership.decode_join),
        group_membership.encode_join_response,
        _bare(group_membership.decode_join_response),
    ),
    ApiKey.HEARTBEAT: NativeApi(
        group_membership.encode_heartbeat,
        _bare(group_membership.decode_heartbeat),
        group_membership.encode_heartbeat_response,
        _bare(group_membership.decode_heartbeat_response),
    ),
    ApiKey.LEAVE_GROUP: NativeApi(
        group_membership.encode_leave,
        _bare(group_membership.decode_leave),
        group_membership.encode_leave_response,
        _bare(group_membership.decode_leave_response),
    ),
    ApiKey.SYNC_GROUP: NativeApi(
        group_membership.encode_sync,
        _bare(group_membership.decode_sync),
        group_membership.encode_sync_response,
        _bare(group_membership.decode_sync_response),
    ),
    ApiKey.DESCRIBE_GROUPS: NativeApi(
        group_membership.encode_describe,
        _bare(group_membership.decode_describe),
        group_membership.encode_describe_response,
        _bare(group_membership.decode_describe_response),
    ),
    ApiKey.LIST_GROUPS: NativeApi(
        groups.encode_list, _bare(groups.decode_list), groups.encode_list_response, _bare(groups.decode_list_response)
    ),
    ApiKey.DELETE_GROUPS: NativeApi(
        groups.encode_delete,
        _bare(groups.decode_delete),
        groups.encode_delete_response,
        _bare(groups.decode_delete_response),
    ),
    ApiKey.DESCRIBE_PRODUCERS: NativeApi(
        describe_producers.encode_request,
        _bare(describe_producers.decode_request),
        describe_producers.encode_response,
        _bare(describe_producers.decode_response),
    ),
    ApiKey.ALTER_REPLICA_LOG_DIRS: NativeApi(
        log_dirs.encode_alter,
        _bare(log_dirs.decode_alter),
        log_dirs.encode_alter_response,
        _bare(log_dirs.decode_alter_response),
    ),
    ApiKey.DESCRIBE_LOG_DIRS: NativeApi(
        log_dirs.encode_describe,
        _bare(log_dirs.decode_describe),
        log_dirs.encode_describe_response,
        _bare(log_dirs.decode_describe_response),
    ),
}
