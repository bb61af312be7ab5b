"""ListGroups (16), versions 0-5: the groups of one broker. Version 4 added states, 5 types."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.kafka.client.fields import ERROR
from barnabas.protocol.kafka.groups import list_groups
from barnabas.protocol.kafka.schema import INT32, STRING, Message, rows, since
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.groups import ListedGroup, ListGroupsResponse


def _group(group_id: str, protocol_type: str, state: str = "", type: str = "") -> ListedGroup:
    return ListedGroup(group_id, protocol_type, state, type.capitalize())


LIST_GROUPS: Final = ClientApi(
    ApiKey.LIST_GROUPS,
    0,
    5,
    list_groups.REQUEST,
    Message(
        3,
        ListGroupsResponse,
        _throttle_ms=since(1, INT32),
        error=ERROR,
        groups=rows(_group, group_id=STRING, protocol_type=STRING, state=since(4, STRING), type=since(5, STRING)),
    ),
)
"""Writes a ListGroupsRequest, reads a ListGroupsResponse; state and type are empty in versions without them."""
