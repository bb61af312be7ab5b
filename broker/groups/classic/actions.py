"""What a group wants done: it does no I/O itself, and answers nobody.

A waiter is whatever the caller gave with a request that may have to wait; the group hands it back, once, with the
answer. `WriteGroup` asks for a record, and for `ClassicGroup.written` with its `write_id` when that is done or failed.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from barnabas.protocol.groups.metadata import GroupMetadataValue
from barnabas.protocol.messages.groups.join_group import JoinGroupResponse
from barnabas.protocol.messages.groups.sync_group import SyncGroupResponse

Waiter: TypeAlias = Any


class Answer(NamedTuple):
    """The answer to whoever waits."""

    waiter: Waiter
    response: JoinGroupResponse | SyncGroupResponse


class WriteGroup(NamedTuple):
    """The group as it shall be found after a restart."""

    write_id: int
    value: GroupMetadataValue


Action: TypeAlias = Answer | WriteGroup
