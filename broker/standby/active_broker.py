"""The active broker as its standby reaches it through the API of standbys. Methods raise ClientError."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.clients.addresses import parse_bootstrap
from barnabas.clients.errors import BrokerConnectionError, RefusedError, reason_of
from barnabas.clients.network.connection import Connection
from barnabas.clients.network.node_connections import settings_of
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.standby import (
    SnapshotName,
    StandbyAction,
    StandbyIdentity,
    StandbyRequest,
    StandbyResponse,
)

if TYPE_CHECKING:
    from barnabas.clients.config import ClientConfig

METADATA_WAIT_MS: Final = 500


class ActiveBroker:
    """One connection. Requests are sent one after the other."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @classmethod
    async def connect(cls, config: ClientConfig) -> ActiveBroker:
        """Connect to the first address that answers, and log in."""
        settings = settings_of(config)
        failures: list[BrokerConnectionError] = []
        for address in parse_bootstrap(config.bootstrap):
            try:
                return cls(await Connection.open(address, settings))
            except BrokerConnectionError as error:
                failures.append(error)
        raise BrokerConnectionError("; ".join(map(str, failures)))

    async def identify(self) -> StandbyIdentity:
        """Return the broker's identity."""
        identity = (await self._ask(StandbyRequest(action=StandbyAction.IDENTIFY))).identity
        if identity is None or not identity.directory_ids:
            raise BrokerConnectionError(f"{self._connection.address}: the answer has no identity")
        return identity

    async def metadata(self, offset: int, last_crc: int | None) -> StandbyResponse:
        """Return metadata from `offset` on; waits METADATA_WAIT_MS for news."""
        return await self._ask(
            StandbyRequest(
                action=StandbyAction.METADATA, offset=offset, last_crc=last_crc, max_wait_ms=METADATA_WAIT_MS
            )
        )

    async def snapshot(self, snapshot: SnapshotName, position: int) -> bytes:
        """Return bytes of a snapshot, none at its end."""
        return (await self._ask(StandbyRequest(action=StandbyAction.SNAPSHOT, offset=position, snapshot=snapshot))).data

    async def freeze(self, number: int, time_ms: int) -> StandbyResponse:
        """Let the broker refuse writes for a time; return the ends of its logs."""
        return await self._ask(StandbyRequest(action=StandbyAction.FREEZE, max_wait_ms=time_ms, number=number))

    async def unfreeze(self) -> None:
        """Let the broker accept writes again."""
        await self._ask(StandbyRequest(action=StandbyAction.UNFREEZE))

    async def retire(self, number: int) -> None:
        """Let the frozen broker stop for good."""
        await self._ask(StandbyRequest(action=StandbyAction.RETIRE, number=number))

    async def fence(self, number: int) -> None:
        """Let a broker that was replaced in an unplanned takeover stop for good."""
        await self._ask(StandbyRequest(action=StandbyAction.FENCE, number=number))

    def close(self) -> None:
        """Close the connection; a request in flight fails."""
        self._connection.close()

    async def _ask(self, request: StandbyRequest) -> StandbyResponse:
        connection = self._connection
        if connection.version_of(ApiKey.STANDBY) is None:
            raise BrokerConnectionError(f"{connection.address} is a broker that cannot have a standby: update it")
        response: StandbyResponse = await connection.request(request)
        if response.error is not ErrorCode.NONE:
            message = response.message or reason_of(response.error)
            if response.error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                message = "a standby needs CLUSTER_ACTION and ALTER on the cluster of its active broker"
            raise RefusedError(response.error, f"{connection.address}: {message}")
        return response
