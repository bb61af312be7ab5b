"""mirrors (1000): create, alter, promote, delete and describe mirrors. Barnabas only.

    request   action str (create, alter, promote, delete, describe), names [str], fields {str: value} (default {}),
              release_topics bool (default false)
    response  error, message, released [topic],
              mirrors [{name, definition {str: value}, state, error str or nil,
                        topics [[topic, state, source_id str or nil]],
                        partitions [[topic, partition, state, offset, source_offset, lag_records int or nil,
                                     lag_seconds float or nil, error str or nil, lag_bytes int or nil]],
                        problems [[topic, reason]],
                        promoted [[topic, partition, copied_end, source_epoch, end, leader_epoch, committed, aborted,
                                   cut]]}]

The values of `fields` and `definition` are null, booleans, integers, texts and arrays of texts.
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages.cluster.mirrors import (
    MirrorAction,
    MirrorDescription,
    MirroredPartition,
    MirroredTopic,
    MirrorField,
    MirrorProblem,
    MirrorsRequest,
    MirrorsResponse,
    PromotedPartition,
    definition_fields,
)
from barnabas.protocol.native.fields import (
    INT32,
    INT64,
    array,
    body_of,
    boolean,
    error_code,
    field,
    integer,
    long_text,
    number,
    optional_text,
    plain,
    row,
    text,
)


def encode_request(request: MirrorsRequest) -> dict[str, Any]:
    """The body of a request."""
    return {
        "action": str(request.action),
        "names": list(request.names),
        "fields": request.fields,
        "release_topics": request.releases_topics,
    }


def decode_request(body: dict[str, Any]) -> MirrorsRequest:
    """Raises DecodeError, naming the field."""
    action = text(field(body, "action"), "action")
    if action not in [each.value for each in MirrorAction]:
        raise DecodeError(f"action={action!r} is not one of {', '.join(MirrorAction)}")
    return MirrorsRequest(
        action=action,
        names=[text(each, "names[]") for each in array(field(body, "names", []), "names")],
        definition=_fields(field(body, "fields", {}), "fields"),
        releases_topics=boolean(field(body, "release_topics", False), "release_topics"),
    )


def encode_response(response: MirrorsResponse) -> dict[str, Any]:
    """The body of an answer."""
    return {
        "error": int(response.error),
        "message": response.message,
        "released": list(response.released),
        "mirrors": [_description(each) for each in response.mirrors],
    }


def decode_response(body: dict[str, Any]) -> MirrorsResponse:
    """Raises DecodeError, naming the field."""
    return MirrorsResponse(
        error=error_code(field(body, "error"), "error"),
        message=long_text(field(body, "message", None), "message"),
        mirrors=[_described(body_of(each, "mirrors[]")) for each in array(field(body, "mirrors"), "mirrors")],
        released=[text(each, "released[]") for each in array(field(body, "released"), "released")],
    )


def _description(mirror: MirrorDescription) -> dict[str, Any]:
    return {
        "name": mirror.name,
        "definition": mirror.fields,
        "state": str(mirror.state),
        "error": mirror.error,
        "topics": plain(mirror.topics),
        "partitions": plain(mirror.partitions),
        "problems": plain(mirror.problems),
        "promoted": plain(mirror.promoted),
    }


def _described(body: dict[str, Any]) -> MirrorDescription:
    problems = [row(each, "problems[]", 2) for each in array(field(body, "problems"), "problems")]
    return MirrorDescription(
        name=text(field(body, "name"), "name"),
        definition=_fields(field(body, "definition"), "definition"),
        state=text(field(body, "state"), "state"),
        error=long_text(field(body, "error"), "error"),
        topics=[_topic(each) for each in array(field(body, "topics"), "topics")],
        partitions=[_partition(each) for each in array(field(body, "partitions"), "partitions")],
        problems=[MirrorProblem(text(topic, "topic"), long_text(reason, "reason") or "") for topic, reason in problems],
        promoted=[_promoted(each) for each in array(field(body, "promoted", []), "promoted")],
    )


def _topic(entry: Any) -> MirroredTopic:
    topic, state, source_id = row(entry, "topics[]", 3)
    return MirroredTopic(text(topic, "topic"), text(state, "state"), optional_text(source_id, "source_id"))


def _partition(entry: Any) -> MirroredPartition:
    topic, partition, state, offset, source_offset, lag_records, lag_seconds, error, lag_bytes = row(
        entry, "partitions[]", 9
    )
    return MirroredPartition(
        text(topic, "topic"),
        integer(partition, "partition", INT32),
        text(state, "state"),
        integer(offset, "offset", INT64),
        integer(source_offset, "source_offset", INT64),
        None if lag_records is None else integer(lag_records, "lag_records", INT64),
        None if lag_seconds is None else number(lag_seconds, "lag_seconds"),
        long_text(error, "error"),
        None if lag_bytes is None else integer(lag_bytes, "lag_bytes", INT64),
    )


def _promoted(entry: Any) -> PromotedPartition:
    topic, partition, *numbers = row(entry, "promoted[]", 9)
    copied_end, source_epoch, end, leader_epoch, committed, aborted, cut = (
        integer(each, "promoted[] number", INT64) for each in numbers
    )
    return PromotedPartition(
        text(topic, "topic"),
        integer(partition, "partition", INT32),
        copied_end,
        source_epoch,
        end,
        leader_epoch,
        committed,
        aborted,
        cut,
    )


def _fields(value: Any, name: str) -> list[MirrorField]:
    """Check that a map has text keys and plain values; MirrorDefinition checks what they mean."""
    found = body_of(value, name)
    for key, each in found.items():
        text(key, f"{name} key")
        values = each if type(each) is list else [each]
        for part in values:
            if part is not None and type(part) not in (bool, int, str):
                raise DecodeError(f"{name}.{key} has a value that is no text, integer, boolean or null")
    return definition_fields(found)
