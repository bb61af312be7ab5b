"""AlterClientQuotas (key 49): CLUSTER_AUTHORIZATION_FAILED without ALTER_CONFIGS on the cluster.

Then one result per entity, with the checks of broker/metadata/security/quotas.py. Names of hosts are resolved on
a thread, at most 100 in a request. A change is durable, and limits, before it is answered.
"""

from __future__ import annotations

import ipaddress
import logging
from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.authorization import ensure_cluster_allowed
from barnabas.broker.metadata.security.hosts import is_resolvable
from barnabas.broker.metadata.security.image import quota_entity
from barnabas.broker.metadata.security.quotas import plan_alter_quotas
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.client_quotas import (
    IP,
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    pairs_of,
)
from barnabas.protocol.messages.security.resources import Operation

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable
    from concurrent.futures import Executor

    from barnabas.broker.metadata_changes import MetadataChanges
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe
    from barnabas.protocol.messages.security.client_quotas import QuotaOp

_MAX_HOST_NAMES: Final = 100
"""Each may hold a thread for seconds."""

logger = logging.getLogger(__name__)


class AlterClientQuotasHandler:
    """Serves AlterClientQuotas."""

    def __init__(
        self, changes: MetadataChanges, loop: asyncio.AbstractEventLoop, blocking_io: Executor, probe: ApiProbe
    ) -> None:
        self._changes = changes
        self._loop = loop
        self._blocking_io = blocking_io
        self._probe = probe

    async def __call__(self, session: Session, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
        """Answer one AlterClientQuotas request as the module docstring specifies."""
        ensure_cluster_allowed(session, Operation.ALTER_CONFIGS, ApiKey.ALTER_CLIENT_QUOTAS)
        names = {name for entry in request.entries for kind, name in pairs_of(entry.entity) if kind == IP and name}
        hosts = {name for name in names if not _is_address(name)}
        if len(hosts) > _MAX_HOST_NAMES:
            message = f"A request may name at most {_MAX_HOST_NAMES} hosts; give their addresses instead."
            raise BrokerError(ErrorCode.INVALID_REQUEST, message)
        unknown = await self._loop.run_in_executor(self._blocking_io, _unresolvable, hosts) if hosts else set()
        results = await self._changes.change(
            lambda image: plan_alter_quotas(image, request.entries, resolves=lambda name: name not in unknown),
            commit=not request.validate_only,
        )
        changes = {quota_entity(pairs_of(entry.entity)): entry.ops for entry in request.entries}
        for result in results:
            if result.error is not ErrorCode.NONE:
                self._probe.count_error(result.error.name.lower())
            elif not request.validate_only:
                entity = quota_entity(pairs_of(result.entity))
                logger.info(
                    "quotas of %s changed by %s (%s): %s",
                    _text(entity),
                    session,
                    printable(str(session.principal)),
                    _changes(changes[entity]),
                )
        return AlterClientQuotasResponse(results=results)


def _text(entity: Iterable[tuple[str, str | None]]) -> str:
    """`user alice, default client-id`."""
    return ", ".join(f"default {kind}" if name is None else f"{kind} {name!r}" for kind, name in entity)


def _changes(ops: Iterable[QuotaOp]) -> str:
    """`producer_byte_rate=1024, request_percentage removed`."""
    return ", ".join(f"{op.key} removed" if op.remove else f"{op.key}={op.value:.15g}" for op in ops)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _unresolvable(hosts: Iterable[str]) -> set[str]:
    """Return the names that the resolver does not know. Blocks."""
    return {host for host in hosts if not is_resolvable(host)}
