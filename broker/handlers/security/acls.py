"""DescribeAcls (29), CreateAcls (30), DeleteAcls (31).

In this order: CLUSTER_AUTHORIZATION_FAILED without DESCRIBE (29) or ALTER (30, 31) on the cluster; SECURITY_DISABLED on
a broker without an authorizer; the checks of broker/metadata/security/acls.py. A change is durable, and decides, before
it is answered. A filter with an unknown code is INVALID_REQUEST for DescribeAcls, too; Kafka closes the connection if
the code is 0, and finds no ACLs if it is a larger one.
"""

from __future__ import annotations

import logging
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.handlers.authorization import ensure_cluster_allowed
from barnabas.broker.handlers.turns import Turns, in_turns
from barnabas.broker.metadata.security.acls import filter_fault, plan_create_acls, plan_delete_acls
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.acls import (
    Acl,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
    DescribedAcl,
    DescribedResource,
)
from barnabas.protocol.messages.security.resources import Operation

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.metadata_changes import MetadataChanges
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe

logger = logging.getLogger(__name__)

_LOGGED: Final = 10
"""Lines of one request."""


class DescribeAclsHandler:
    """Serves DescribeAcls."""

    def __init__(self, store: MetadataView) -> None:
        self._store = store

    def __call__(
        self, session: Session, request: DescribeAclsRequest
    ) -> DescribeAclsResponse | Coroutine[Any, Any, DescribeAclsResponse]:
        """Answer one DescribeAcls request as the module docstring specifies; of many ACLs in several turns."""
        return in_turns(self._describe(session, request))

    async def _describe(self, session: Session, request: DescribeAclsRequest) -> DescribeAclsResponse:
        turns = Turns()
        ensure_cluster_allowed(session, Operation.DESCRIBE, ApiKey.DESCRIBE_ACLS)
        if session.access is None:
            raise BrokerError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
        selected = request.filter
        fault = filter_fault(selected)
        if fault is not None:
            raise BrokerError(ErrorCode.INVALID_REQUEST, fault)
        found = []
        for acl in self._store.image.security.acls.values():  # an image does not change
            if turns.is_over:
                await turns.next()
            if selected.matches(acl):
                found.append(acl)
        resources = []
        for (kind, name, pattern), acls in groupby(sorted(found), key=itemgetter(0, 1, 2)):
            if turns.is_over:
                await turns.next()
            described = [
                DescribedAcl(principal=acl.principal, host=acl.host, operation=acl.operation, permission=acl.permission)
                for acl in acls
            ]
            resources.append(
                DescribedResource(resource_type=kind, resource_name=name, pattern_type=pattern, acls=described)
            )
        return DescribeAclsResponse(resources=resources)


class CreateAclsHandler:
    """Serves CreateAcls."""

    def __init__(self, changes: MetadataChanges, probe: ApiProbe) -> None:
        self._changes = changes
        self._probe = probe

    async def __call__(self, session: Session, request: CreateAclsRequest) -> CreateAclsResponse:
        """Answer one CreateAcls request as the module docstring specifies."""
        _require_alter(session, ApiKey.CREATE_ACLS)
        acls = request.acls
        results = await self._changes.change(lambda image: plan_create_acls(image, acls))
        for result in results:
            if result.error is not ErrorCode.NONE:
                self._probe.count_error(result.error.name.lower())
        paired = zip(acls, results, strict=True)
        _log(session, "created", [acl for acl, result in paired if result.error is ErrorCode.NONE])
        return CreateAclsResponse(results=results)


class DeleteAclsHandler:
    """Serves DeleteAcls."""

    def __init__(self, changes: MetadataChanges, probe: ApiProbe) -> None:
        self._changes = changes
        self._probe = probe

    async def __call__(self, session: Session, request: DeleteAclsRequest) -> DeleteAclsResponse:
        """Answer one DeleteAcls request as the module docstring specifies."""
        _require_alter(session, ApiKey.DELETE_ACLS)
        results = await self._changes.change(lambda image: plan_delete_acls(image, request.filters))
        for result in results:
            if result.error is not ErrorCode.NONE:
                self._probe.count_error(result.error.name.lower())
        _log(session, "deleted", list(dict.fromkeys(acl for result in results for acl in result.deleted)))
        return DeleteAclsResponse(results=results)


def _log(session: Session, change: str, acls: Sequence[Acl]) -> None:
    """Log the change of ACLs; of many, the first ones and their number."""
    author = printable(str(session.principal))
    for acl in acls[:_LOGGED]:
        logger.info("ACL %s by %s (%s): %s", change, session, author, printable(str(acl)))
    if len(acls) > _LOGGED:
        logger.info("%d more ACLs %s by %s (%s)", len(acls) - _LOGGED, change, session, author)


def _require_alter(session: Session, api: ApiKey) -> None:
    ensure_cluster_allowed(session, Operation.ALTER, api)
    if session.access is None:
        raise BrokerError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
