"""OffsetCommit (8) without a member, and DeleteGroups (42)."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.groups import DeleteGroupsRequest, DeleteGroupsResponse
from barnabas.protocol.messages.groups.offset_commit import OffsetCommitRequest, OffsetCommitResponse

OFFSET_COMMIT: Final = ClientApi(ApiKey.OFFSET_COMMIT, 2, 9, OffsetCommitRequest, OffsetCommitResponse)

DELETE_GROUPS: Final = ClientApi(ApiKey.DELETE_GROUPS, 0, 2, DeleteGroupsRequest, DeleteGroupsResponse)
