"""FindCoordinator (key 10): the broker that serves a group or transactional id. On a single node it is this one.

The client may DESCRIBE each group or transactional id (GROUP_AUTHORIZATION_FAILED,
TRANSACTIONAL_ID_AUTHORIZATION_FAILED). Keys of share partitions, `group:topic id:partition`, are for brokers: from
version 6 on, with CLUSTER_ACTION on the cluster (CLUSTER_AUTHORIZATION_FAILED). Another form, an older version and
another type get INVALID_REQUEST. A key whose partition of the internal topic is not served, because it has no log (yet)
or could not be loaded, gets COORDINATOR_NOT_AVAILABLE, as in Kafka: clients pause and ask again, while a coordinator
that is named and refuses everything makes them ask 1,000 times a second. Differs from Kafka: the internal topics are
created when a group or a transactional id first writes to them, not at the first FindCoordinator, which clients that
never commit send as well. Until then this broker is named.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.handlers.authorization import denial, ensure_cluster_allowed
from barnabas.broker.handlers.turns import Turns, denied_in_turns, in_turns
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.find_coordinator import (
    GROUP_KEY,
    SHARE_KEY,
    TRANSACTION_KEY,
    CoordinatorResult,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.protocol.messages.security.resources import Operation, ResourceType
from barnabas.protocol.uuids import parse_uuid

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from barnabas.broker.coordinators import Coordinators
    from barnabas.broker.network.advertised import AdvertisedAddresses
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe
    from barnabas.protocol.messages.nodes import BrokerAddress


_PARTS: Final = 3
_INT32: Final = re.compile(r"[-+]?[0-9]{1,10}", re.ASCII)


class FindCoordinatorHandler:
    """Serves FindCoordinator."""

    def __init__(self, coordinators: Coordinators, addresses: AdvertisedAddresses, probe: ApiProbe) -> None:
        self._coordinators = coordinators
        self._addresses = addresses
        self._probe = probe

    def __call__(
        self, session: Session, request: FindCoordinatorRequest
    ) -> FindCoordinatorResponse | Coroutine[Any, Any, FindCoordinatorResponse]:
        """Answer one FindCoordinator request as the module docstring specifies; of many keys in several turns."""
        return in_turns(self._find(session, request))

    async def _find(self, session: Session, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        turns = Turns()
        node = self._addresses.address_for(session)
        if request.key_type == SHARE_KEY and request.takes_share_keys:
            ensure_cluster_allowed(session, Operation.CLUSTER_ACTION, ApiKey.FIND_COORDINATOR)
            return FindCoordinatorResponse(coordinators=[self._of_share_partition(key, node) for key in request.keys])
        if request.key_type not in (GROUP_KEY, TRANSACTION_KEY):
            return FindCoordinatorResponse(coordinators=[self._refuse(key, request.key_type) for key in request.keys])
        kind = ResourceType.GROUP if request.key_type == GROUP_KEY else ResourceType.TRANSACTIONAL_ID
        denied = await denied_in_turns(turns, session, Operation.DESCRIBE, kind, request.keys, ApiKey.FIND_COORDINATOR)
        error = denial(kind)
        code, message, label = error.code, error.message, error.code.name.lower()
        results = []
        for key in request.keys:
            if key in denied:
                self._probe.count_error(label)
                results.append(CoordinatorResult(key=key, error=code, message=message))
            else:
                results.append(self._found(key, request.key_type, node))
            if turns.is_over:
                await turns.next()
        return FindCoordinatorResponse(coordinators=results)

    def _of_share_partition(self, key: str, node: BrokerAddress) -> CoordinatorResult:
        if _is_share_partition(key):
            return self._found(key, SHARE_KEY, node)
        code = ErrorCode.INVALID_REQUEST
        self._probe.count_error(code.name.lower())
        return CoordinatorResult(
            key=key, error=code, message="the key of a share partition is group:topic id:partition"
        )

    def _found(self, key: str, key_type: int, node: BrokerAddress) -> CoordinatorResult:
        unserved = self._coordinators.unserved(key_type, key)
        if unserved is None:
            return CoordinatorResult(key=key, node_id=node.node_id, host=node.host, port=node.port)
        self._probe.count_error(unserved.code.name.lower())
        return CoordinatorResult(key=key, error=unserved.code, message=unserved.message)

    def _refuse(self, key: str, key_type: int) -> CoordinatorResult:
        code = ErrorCode.INVALID_REQUEST
        self._probe.count_error(code.name.lower())
        return CoordinatorResult(key=key, error=code, message=f"no coordinator of type {key_type} is served here")


def _is_share_partition(key: str) -> bool:
    """Return whether a key has the form of a share partition's; the group may have colons."""
    parts = key.rsplit(":", 2)
    if len(parts) != _PARTS or not parts[0].strip() or not _INT32.fullmatch(parts[2]):
        return False
    try:
        parse_uuid(parts[1])
    except DecodeError:
        return False
    return True
