"""The table of the native dialect's APIs and their codecs.

A codec is four functions of a module in this folder: encode_ and decode_ of a request and of its answer, but for the
APIs of bodies.py, of which the module has the client's half. The module and the neutral types that it imports are
loaded at the API's first request: most brokers serve few of them, and loading all of them would add a quarter to the
time of a start.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, Literal, NamedTuple

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages.api_key import ApiKey

Body = dict[str, Any]

VERSION = 0
"""The version of every native API so far: new fields are new keys, and both sides ignore unknown keys."""


class NativeRow(NamedTuple):
    """One API: `module` has encode_<request>, decode_<request>, encode_<response> and decode_<response>."""

    module: str
    request: str = "request"
    response: str = "response"
    records_follow: Literal["nothing", "request", "response"] = "nothing"
    """The decoder that also takes the records after the body."""


NATIVE_APIS: Final[dict[int, NativeRow]] = {
    ApiKey.PRODUCE: NativeRow("produce", records_follow="request"),
    ApiKey.FETCH: NativeRow("fetch", records_follow="response"),
    ApiKey.LIST_OFFSETS: NativeRow("list_offsets"),
    ApiKey.METADATA: NativeRow("metadata"),
    ApiKey.SASL_HANDSHAKE: NativeRow("sasl", "handshake", "handshake_response"),
    ApiKey.API_VERSIONS: NativeRow("hello"),
    ApiKey.CREATE_TOPICS: NativeRow("topics", "create_topics", "create_topics_response"),
    ApiKey.DELETE_TOPICS: NativeRow("topics", "delete_topics", "delete_topics_response"),
    ApiKey.DELETE_RECORDS: NativeRow("delete_records"),
    ApiKey.INIT_PRODUCER_ID: NativeRow("init_producer_id"),
    ApiKey.SASL_AUTHENTICATE: NativeRow("sasl", "authenticate", "authenticate_response"),
    ApiKey.CREATE_PARTITIONS: NativeRow("topics", "create_partitions", "create_partitions_response"),
    ApiKey.DESCRIBE_CONFIGS: NativeRow("configs", "describe", "describe_response"),
    ApiKey.ALTER_CONFIGS: NativeRow("configs", "alter", "alter_response"),
    ApiKey.OFFSET_COMMIT: NativeRow("groups", "commit", "commit_response"),
    ApiKey.OFFSET_FETCH: NativeRow("groups", "fetch", "fetch_response"),
    ApiKey.JOIN_GROUP: NativeRow("group_membership", "join", "join_response"),
    ApiKey.HEARTBEAT: NativeRow("group_membership", "heartbeat", "heartbeat_response"),
    ApiKey.LEAVE_GROUP: NativeRow("group_membership", "leave", "leave_response"),
    ApiKey.SYNC_GROUP: NativeRow("group_membership", "sync", "sync_response"),
    ApiKey.DESCRIBE_GROUPS: NativeRow("group_membership", "describe", "describe_response"),
    ApiKey.CONSUMER_GROUP_DESCRIBE: NativeRow("consumer_groups", "describe", "describe_response"),
    ApiKey.LIST_GROUPS: NativeRow("groups", "list", "list_response"),
    ApiKey.DELETE_GROUPS: NativeRow("groups", "delete", "delete_response"),
    ApiKey.DESCRIBE_PRODUCERS: NativeRow("describe_producers"),
    ApiKey.END_TXN: NativeRow("transactions", "end", "end_response"),
    ApiKey.TXN_OFFSET_COMMIT: NativeRow("transactions", "commit_offsets", "commit_offsets_response"),
    ApiKey.ALTER_REPLICA_LOG_DIRS: NativeRow("log_dirs", "alter", "alter_response"),
    ApiKey.DESCRIBE_LOG_DIRS: NativeRow("log_dirs", "describe", "describe_response"),
    ApiKey.WRITE_TXN_MARKERS: NativeRow("transaction_admin", "markers", "markers_response"),
    ApiKey.DESCRIBE_TRANSACTIONS: NativeRow("transaction_admin", "describe", "describe_response"),
    ApiKey.LIST_TRANSACTIONS: NativeRow("transaction_admin", "list", "list_response"),
    ApiKey.MIRRORS: NativeRow("mirrors"),
    ApiKey.STANDBY: NativeRow("standby"),
    ApiKey.EXPLAIN_GROUP: NativeRow("explain_group"),
    ApiKey.EXPLAIN_START: NativeRow("explain_start"),
    ApiKey.EXPLAIN_TOPIC: NativeRow("explain_topic"),
}


class NativeApi(NamedTuple):
    """The codec of one API. The decoders also get the records after the body."""

    encode_request: Callable[[Any], Body]
    decode_request: Callable[[Body, memoryview], Any]
    encode_response: Callable[[Any], Body]
    decode_response: Callable[[Body, memoryview], Any]


_loaded: dict[int, NativeApi] = {}


def native_api(api: int) -> NativeApi:
    """Return the codec of an API of the table, loading it at first."""
    return _loaded.get(api) or _load(api)


def _load(api: int) -> NativeApi:
    from barnabas.protocol.native.bodies import SERVED  # here: a start lists the APIs, and serves none of them

    row = NATIVE_APIS[api]
    module = import_module(f"{__package__}.{row.module}")
    served = SERVED.get(api)
    decode_request = served.decode_request if served else getattr(module, f"decode_{row.request}")
    decode_response = getattr(module, f"decode_{row.response}")
    codec = NativeApi(
        getattr(module, f"encode_{row.request}"),
        decode_request if row.records_follow == "request" else _bare(decode_request),
        served.encode_response if served else getattr(module, f"encode_{row.response}"),
        decode_response if row.records_follow == "response" else _bare(decode_response),
    )
    _loaded[api] = codec
    return codec


def _bare(decode: Callable[[Body], Any]) -> Callable[[Body, memoryview], Any]:
    """Wrap a decoder of a body that has no records after it."""

    def checked(body: Body, records: memoryview) -> Any:
        if len(records):
            raise DecodeError(f"{len(records)} bytes follow the header of an API that has no records")
        return decode(body)

    return checked
