"""ListGroups (16), versions 0-5: the groups of one broker. Version 4 added states, 5 types."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.groups import ListGroupsRequest, ListGroupsResponse

LIST_GROUPS: Final = ClientApi(ApiKey.LIST_GROUPS, 0, 5, ListGroupsRequest, ListGroupsResponse)
