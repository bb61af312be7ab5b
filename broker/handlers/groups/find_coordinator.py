"""FindCoordinator (key 10): the broker that serves a group or transactional id. On a single node it is this one.

A key of another type gets INVALID_REQUEST. Differs from Kafka: `__consumer_offsets` and `__transaction_state` are
created when a group or a transactional id first writes to them, not at the first FindCoordinator, which clients that
never commit send as well. So no client is told to retry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups.find_coordinator import (
    GROUP_KEY,
    TRANSACTION_KEY,
    CoordinatorResult,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.network.advertised import AdvertisedAddresses
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe


class FindCoordinatorHandler:
    """Serves FindCoordinator."""

    def __init__(self, addresses: AdvertisedAddresses, probe: ApiProbe) -> None:
        self._addresses = addresses
        self._probe = probe

    def __call__(self, session: Session, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        """Answer one FindCoordinator request as the module docstring specifies."""
        if request.key_type not in (GROUP_KEY, TRANSACTION_KEY):
            return FindCoordinatorResponse([self._refuse(key, request.key_type) for key in request.keys])
        node = self._addresses.address_for(session)
        return FindCoordinatorResponse(
            [CoordinatorResult(key, node_id=node.node_id, host=node.host, port=node.port) for key in request.keys]
        )

    def _refuse(self, key: str, key_type: int) -> CoordinatorResult:
        code = ErrorCode.INVALID_REQUEST
        self._probe.count_error(code.name.lower())
        return CoordinatorResult(key, code, f"no coordinator of type {key_type} is served here")
