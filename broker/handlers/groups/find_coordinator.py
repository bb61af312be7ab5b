"""FindCoordinator (key 10): the broker that serves a group or transactional id. On a single node it is this one.

The client may DESCRIBE each group or transactional id (GROUP_AUTHORIZATION_FAILED,
TRANSACTIONAL_ID_AUTHORIZATION_FAILED). A key of another type gets INVALID_REQUEST. Differs from Kafka:
`__consumer_offsets` and `__transaction_state` are created when a group or a transactional id first writes to them, not
at the first FindCoordinator, which clients that never commit send as well. So no client is told to retry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.broker.handlers.authorization import denial
from barnabas.broker.handlers.turns import Turns, denied_in_turns, in_turns
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.find_coordinator import (
    GROUP_KEY,
    TRANSACTION_KEY,
    CoordinatorResult,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.protocol.messages.security.resources import Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from barnabas.broker.network.advertised import AdvertisedAddresses
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe


class FindCoordinatorHandler:
    """Serves FindCoordinator."""

    def __init__(self, addresses: AdvertisedAddresses, probe: ApiProbe) -> None:
        self._addresses = addresses
        self._probe = probe

    def __call__(
        self, session: Session, request: FindCoordinatorRequest
    ) -> FindCoordinatorResponse | Coroutine[Any, Any, FindCoordinatorResponse]:
        """Answer one FindCoordinator request as the module docstring specifies; of many keys in several turns."""
        return in_turns(self._find(session, request))

    async def _find(self, session: Session, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        turns = Turns()
        if request.key_type not in (GROUP_KEY, TRANSACTION_KEY):
            return FindCoordinatorResponse([self._refuse(key, request.key_type) for key in request.keys])
        node = self._addresses.address_for(session)
        kind = ResourceType.GROUP if request.key_type == GROUP_KEY else ResourceType.TRANSACTIONAL_ID
        denied = await denied_in_turns(turns, session, Operation.DESCRIBE, kind, request.keys, ApiKey.FIND_COORDINATOR)
        error = denial(kind)
        code, message, label = error.code, error.message, error.code.name.lower()
        results = []
        for key in request.keys:
            if key in denied:
                self._probe.count_error(label)
                results.append(CoordinatorResult(key, code, message))
            else:
                results.append(CoordinatorResult(key, node_id=node.node_id, host=node.host, port=node.port))
            if turns.is_over:
                await turns.next()
        return FindCoordinatorResponse(results)

    def _refuse(self, key: str, key_type: int) -> CoordinatorResult:
        code = ErrorCode.INVALID_REQUEST
        self._probe.count_error(code.name.lower())
        return CoordinatorResult(key, code, f"no coordinator of type {key_type} is served here")
