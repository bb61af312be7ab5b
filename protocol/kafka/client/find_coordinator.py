"""FindCoordinator (10), versions 1-6: the broker that serves a group or a transactional id."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

FIND_COORDINATOR: Final = ClientApi(ApiKey.FIND_COORDINATOR, 1, 6, FindCoordinatorRequest, FindCoordinatorResponse)
