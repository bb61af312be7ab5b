"""Requests and answers of the native dialect as frames, in both directions.

A frame is read in two steps, because they fail differently: `read_request` trusts nothing and raises FrameError, after
which the connection must be closed; `decode_body` knows whom to answer, so what is wrong in there (DecodeError) becomes
an answer with error 42 and the connection goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from barnabas.protocol.errors import BrokerError, DecodeError, ErrorCode
from barnabas.protocol.framing import FrameError
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.protocol.native import (
    configs,
    delete_records,
    describe_producers,
    fetch,
    groups,
    hello,
    init_producer_id,
    list_offsets,
    log_dirs,
    metadata,
    produce,
    topics,
)
from barnabas.protocol.native.fields import INT16, INT32, body_of, error_code, integer
from barnabas.protocol.native.frame import (
    MAX_REQUEST_HEADER_BYTES,
    HeaderTooLargeError,
    ensure_few_values,
    pack_header,
    split_frame,
)

VERSION = 0
"""The one version of every native API so far: fields are added as keys, which both sides ignore when they are new."""

_Body = dict[str, Any]

_new_tuple = tuple.__new__


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
    ApiKey.LIST_GROUPS: NativeApi(
        groups.encode_list, _bare(groups.decode_list), groups.encode_list_response, _bare(groups.decode_list_response)
    ),
    ApiKey.DELETE_GROUPS: NativeApi(
        groups.encode_delete,
        _bare(groups.decode_delete),
        groups.encode_delete_response,
        _bare(groups.decode_delete_response),
    ),
    ApiKey.ALTER_REPLICA_LOG_DIRS: NativeApi(
        log_dirs.encode_alter,
        _bare(log_dirs.decode_alter),
        log_dirs.encode_alter_response,
        _bare(log_dirs.decode_alter_response),
    ),
    ApiKey.DESCRIBE_PRODUCERS: NativeApi(
        describe_producers.encode_request,
        _bare(describe_producers.decode_request),
        describe_producers.encode_response,
        _bare(describe_producers.decode_response),
    ),
    ApiKey.DESCRIBE_LOG_DIRS: NativeApi(
        log_dirs.encode_describe,
        _bare(log_dirs.decode_describe),
        log_dirs.encode_describe_response,
        _bare(log_dirs.decode_describe_response),
    ),
}


class RequestHeader(NamedTuple):
    """A request whose body is not decoded yet. `records` is a view of the frame."""

    api: int
    version: int
    correlation_id: int
    client_id: str | None
    body: Any
    records: memoryview

    def without_frame(self) -> RequestHeader:
        """What an answer needs of it, once the frame has gone."""
        return self._replace(body=None, records=memoryview(b""))


class ResponseHeader(NamedTuple):
    """An answer whose body is not decoded yet. `message` explains `error`, where there is one."""

    api: int
    version: int
    correlation_id: int
    error: ErrorCode
    message: str | None
    body: Any
    records: memoryview


def read_request(frame: memoryview) -> RequestHeader:
    """The header of a request's frame (without its size field). Raises FrameError: close the connection."""
    header, records = split_frame(frame, MAX_REQUEST_HEADER_BYTES)
    ensure_few_values(header, len(frame) - len(records))
    api, version, correlation_id, client_id, _ = header
    if not (type(api) is int and type(version) is int and type(correlation_id) is int):
        raise FrameError("header does not begin with the integers api, version, correlation_id")
    if client_id is not None and type(client_id) is not str:
        raise FrameError("client_id is neither a string nor nil")
    header.append(records)
    # Not RequestHeader(...): the constructor of a NamedTuple is a Python function, and this is once per request.
    result: RequestHeader = _new_tuple(RequestHeader, header)
    return result


def is_supported(header: RequestHeader) -> bool:
    """Whether `decode_body` knows the request's api in that version; if not, the answer is UNSUPPORTED_VERSION."""
    return header.version == VERSION and header.api in NATIVE_APIS


def decode_body(header: RequestHeader) -> Any:
    """The neutral request. Raises DecodeError, naming the field: answer INVALID_REQUEST."""
    body = header.body
    return NATIVE_APIS[header.api].decode_request(body if type(body) is dict else body_of(body, "body"), header.records)


def encode_response(header: RequestHeader, response: Any, records_bytes: int) -> bytes:
    """The frame that answers `header` up to its records, of which `records_bytes` follow.

    Raises BrokerError INVALID_REQUEST when more was asked for than one frame can say.
    """
    api, version, correlation_id = header[:3]
    try:
        return pack_header([api, version, correlation_id, 0, NATIVE_APIS[api].encode_response(response)], records_bytes)
    except HeaderTooLargeError as error:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST, f"the answer does not fit a frame, ask for less at a time: {error}"
        ) from error


def encode_error(header: RequestHeader, code: ErrorCode, message: str) -> bytes:
    """The whole frame that refuses `header` as a whole."""
    return pack_header([header.api, header.version, header.correlation_id, int(code), {"message": message}], 0)


def encode_request(api: ApiKey, correlation_id: int, client_id: str | None, request: Any) -> list[bytes | memoryview]:
    """The buffers of a request's frame, to be sent one after the other."""
    records: Sequence[memoryview] = ()
    if isinstance(request, ProduceRequest):
        records = [partition.records for topic in request.topics for partition in topic.partitions]
    body = NATIVE_APIS[api].encode_request(request)
    header = pack_header([int(api), VERSION, correlation_id, client_id, body], sum(len(part) for part in records))
    return [header, *records]


def read_response(frame: memoryview) -> ResponseHeader:
    """The header of an answer's frame (without its size field). Raises FrameError: close the connection."""
    header, records = split_frame(frame)
    try:
        api = integer(header[0], "api", INT16)
        version = integer(header[1], "version", INT16)
        correlation_id = integer(header[2], "correlation_id", INT32)
        error = error_code(header[3], "error_code")
        body = body_of(header[4], "body")
    except DecodeError as problem:
        raise FrameError(f"answer's header: {problem}") from problem
    message = body.get("message")
    return ResponseHeader(
        api, version, correlation_id, error, message if isinstance(message, str) else None, body, records
    )


def decode_response(header: ResponseHeader) -> Any:
    """The neutral response of an answer without an error. Raises DecodeError, naming the field."""
    api = NATIVE_APIS.get(header.api)
    if api is None:
        raise DecodeError(f"api {header.api} is none of ours")
    return api.decode_response(header.body, header.records)
