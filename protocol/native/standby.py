"""standby (1001): what a standby copies of its active broker beside the partitions. Barnabas only.

request   action str (identify, metadata, snapshot, freeze, unfreeze, retire, fence), offset (default 0),
          last_crc int or nil, max_wait_ms (default 0), snapshot [end_offset, epoch] or nil, number (default 0)
response  error, message, end_offset, data bin, snapshot [end_offset, epoch] or nil, is_other_log bool,
          ends [[topic, partition, end_offset]],
          identity [cluster_id, node_id, [directory_id bin], number, bootstrap_checkpoint bin] or nil
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages.cluster.standby import (
    PartitionEnd,
    SnapshotName,
    StandbyAction,
    StandbyIdentity,
    StandbyRequest,
    StandbyResponse,
)
from barnabas.protocol.native.fields import (
    INT32,
    INT64,
    array,
    binary,
    boolean,
    error_code,
    field,
    integer,
    long_text,
    plain,
    row,
    text,
)


def encode_request(request: StandbyRequest) -> dict[str, Any]:
    """The body of a request."""
    return {
        "action": str(request.action),
        "offset": request.offset,
        "last_crc": request.last_crc,
        "max_wait_ms": request.max_wait_ms,
        "snapshot": plain(request.snapshot),
        "number": request.number,
    }


def decode_request(body: dict[str, Any]) -> StandbyRequest:
    """Raises DecodeError, naming the field."""
    action = text(field(body, "action"), "action")
    if action not in [each.value for each in StandbyAction]:
        raise DecodeError(f"action={action!r} is not one of {', '.join(StandbyAction)}")
    last_crc = field(body, "last_crc", None)
    return StandbyRequest(
        action=StandbyAction(action),
        offset=integer(field(body, "offset", 0), "offset", INT64),
        last_crc=None if last_crc is None else integer(last_crc, "last_crc", INT64),
        max_wait_ms=integer(field(body, "max_wait_ms", 0), "max_wait_ms", INT32),
        snapshot=_snapshot(field(body, "snapshot", None)),
        number=integer(field(body, "number", 0), "number", INT32),
    )


def encode_response(response: StandbyResponse) -> dict[str, Any]:
    """The body of an answer."""
    return {
        "error": int(response.error),
        "message": response.message,
        "end_offset": response.end_offset,
        "data": response.data,
        "snapshot": plain(response.snapshot),
        "is_other_log": response.is_other_log,
        "ends": plain(response.ends),
        "identity": plain(response.identity),
    }


def decode_response(body: dict[str, Any]) -> StandbyResponse:
    """Raises DecodeError, naming the field."""
    return StandbyResponse(
        error=error_code(field(body, "error"), "error"),
        message=long_text(field(body, "message", None), "message"),
        identity=_identity(field(body, "identity", None)),
        end_offset=integer(field(body, "end_offset", -1), "end_offset", INT64),
        data=binary(field(body, "data", b""), "data"),
        snapshot=_snapshot(field(body, "snapshot", None)),
        is_other_log=boolean(field(body, "is_other_log", False), "is_other_log"),
        ends=[_end(each) for each in array(field(body, "ends", []), "ends")],
    )


def _snapshot(value: Any) -> SnapshotName | None:
    if value is None:
        return None
    end_offset, epoch = row(value, "snapshot", 2)
    return SnapshotName(integer(end_offset, "snapshot.end_offset", INT64), integer(epoch, "snapshot.epoch", INT32))


def _identity(value: Any) -> StandbyIdentity | None:
    if value is None:
        return None
    cluster_id, node_id, directory_ids, number, checkpoint = row(value, "identity", 5)
    return StandbyIdentity(
        text(cluster_id, "cluster_id"),
        integer(node_id, "node_id", INT32),
        tuple(binary(each, "directory_ids[]") for each in array(directory_ids, "directory_ids")),
        integer(number, "number", INT32),
        binary(checkpoint, "bootstrap_checkpoint"),
    )


def _end(value: Any) -> PartitionEnd:
    topic, partition, end_offset = row(value, "ends[]", 3)
    return PartitionEnd(
        text(topic, "topic"), integer(partition, "partition", INT32), integer(end_offset, "end_offset", INT64)
    )
