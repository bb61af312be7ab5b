"""Standby (10001): the identity and the metadata log of this broker, and the planned switch.

Every action needs CLUSTER_ACTION, as followers do, and ALTER on the cluster: the metadata contains credentials
(CLUSTER_AUTHORIZATION_FAILED). The records of partitions are fetched by Fetch with the replica id of a standby.
INVALID_REQUEST: a number that is not the next switch's, or RETIRE without FREEZE; POLICY_VIOLATION: read.only=true;
RESOURCE_NOT_FOUND: a snapshot that was deleted meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.authorization import ensure_cluster_allowed
from barnabas.broker.metadata.errors import MetadataError
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.standby import StandbyAction, StandbyRequest, StandbyResponse
from barnabas.protocol.messages.security.resources import Operation

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe
    from barnabas.broker.standby.active_side import ActiveSide

LONGEST_WAIT_MS: Final = 1000
"""A request that waits for a metadata change delays the broker's stop."""

LONGEST_FREEZE_MS: Final = 60_000


class StandbyHandler:
    """Serves the API of standbys."""

    def __init__(self, active_side: Callable[[], ActiveSide | None], probe: ApiProbe) -> None:
        self._active_side = active_side()
        self._probe = probe

    async def __call__(self, session: Session, request: StandbyRequest) -> StandbyResponse:
        """Answer one request as the module docstring specifies."""
        try:
            ensure_cluster_allowed(session, Operation.CLUSTER_ACTION, ApiKey.STANDBY)
            ensure_cluster_allowed(session, Operation.ALTER, ApiKey.STANDBY)
            if self._active_side is None:
                raise BrokerError(ErrorCode.POLICY_VIOLATION, "a broker with read.only=true has no standby")
            return await self._answer(self._active_side, request)
        except BrokerError as error:
            self._probe.count_error(error.code.name.lower())
            return StandbyResponse(error=error.code, message=error.message)
        except (OSError, MetadataError) as error:
            self._probe.count_error(ErrorCode.KAFKA_STORAGE_ERROR.name.lower())
            return StandbyResponse(error=ErrorCode.KAFKA_STORAGE_ERROR, message=str(error))

    async def _answer(self, active: ActiveSide, request: StandbyRequest) -> StandbyResponse:
        match request.action:
            case StandbyAction.IDENTIFY:
                return StandbyResponse(identity=await active.identity())
            case StandbyAction.METADATA:
                wait_ms = min(max(request.max_wait_ms, 0), LONGEST_WAIT_MS)
                return await active.metadata(request.offset, request.last_crc, wait_ms)
            case StandbyAction.SNAPSHOT:
                if request.snapshot is None or request.offset < 0:
                    raise BrokerError(ErrorCode.INVALID_REQUEST, "a snapshot and a position in it are needed")
                return StandbyResponse(data=await active.snapshot(request.snapshot, request.offset))
            case StandbyAction.FREEZE:
                return await active.freeze(request.number, min(max(request.max_wait_ms, 0), LONGEST_FREEZE_MS))
            case StandbyAction.UNFREEZE:
                active.unfreeze()
            case StandbyAction.RETIRE:
                await active.retire(request.number)
            case StandbyAction.FENCE:
                await active.fence(request.number)
            case _:
                raise BrokerError(
                    ErrorCode.INVALID_REQUEST, f"action={request.action!r} is not one of {', '.join(StandbyAction)}"
                )
        return StandbyResponse()
