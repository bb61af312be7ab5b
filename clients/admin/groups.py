"""Listing, explaining and deleting consumer groups."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import RefusedError, reason_of
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.connection import Connection
from barnabas.clients.network.retrying import with_retries
from barnabas.clients.network.routing import ask_brokers
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.explain_group import ExplainGroupRequest, ExplainGroupResponse
from barnabas.protocol.messages.groups.find_coordinator import GROUP_KEY
from barnabas.protocol.messages.groups.groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)


async def list_groups(cluster: Cluster, config: ClientConfig) -> list[ListedGroup]:
    """All groups by name: each broker knows those that it coordinates."""

    async def ask(connection: Connection) -> Sequence[ListedGroup]:
        response: ListGroupsResponse = await connection.request(ListGroupsRequest())
        if response.error is not ErrorCode.NONE:
            raise RefusedError(response.error, f"groups cannot be listed: {reason_of(response.error)}")
        return response.groups

    answers = await ask_brokers(cluster, config, ListGroupsRequest.api_key.label, ask)
    # A group that moves meanwhile is listed twice.
    found = {group.group_id: group for groups in answers.values() for group in groups}
    return sorted(found.values(), key=lambda group: group.group_id)


async def explain_group(cluster: Cluster, config: ClientConfig, group: str) -> ExplainGroupResponse:
    """Ask for a group's events, deadlines and lag. Raises RefusedError for an unknown group."""

    async def attempt() -> ExplainGroupResponse:
        connection = await cluster.connections.any_connection()
        response: ExplainGroupResponse = await connection.request(ExplainGroupRequest(group_id=group))
        if response.error is not ErrorCode.NONE:
            raise RefusedError(response.error, response.message or f"group {group!r} cannot be explained")
        return response

    return await with_retries(config, ApiKey.EXPLAIN_GROUP.label, attempt)


async def delete_group(cluster: Cluster, config: ClientConfig, group: str) -> None:
    """Delete a group without members, with its offsets. Raises RefusedError if it is unknown or has members."""

    async def attempt() -> None:
        connection = await cluster.coordinator(GROUP_KEY, group)
        response: DeleteGroupsResponse = await connection.request(DeleteGroupsRequest(group_ids=[group]))
        (result,) = response.results
        if result.error is ErrorCode.GROUP_ID_NOT_FOUND:
            raise RefusedError(result.error, f"there is no group {group!r}")
        if result.error is ErrorCode.NON_EMPTY_GROUP:
            raise RefusedError(result.error, f"group {group!r} has members: stop them first")
        if result.error is not ErrorCode.NONE:
            raise RefusedError(result.error, f"group {group!r} cannot be deleted")

    await with_retries(config, ApiKey.DELETE_GROUPS.label, attempt, coordinated_by=cluster)
