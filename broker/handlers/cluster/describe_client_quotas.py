"""DescribeClientQuotas (key 48): the client quotas of the metadata log.

CLUSTER_AUTHORIZATION_FAILED if the client may not DESCRIBE_CONFIGS of the cluster. INVALID_REQUEST for a filter with an
empty or repeated entity type, a match that does not fit its match type, or an address together with a user or client
id; UNSUPPORTED_VERSION for an entity type without quotas in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.authorization import ensure_cluster_allowed
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.client_quotas import (
    MATCH_DEFAULT,
    MATCH_EXACT,
    MATCH_SPECIFIED,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    QuotaEntry,
    QuotaFilter,
    QuotaLimit,
    entity_of,
)
from barnabas.protocol.messages.security.resources import Operation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.network.session import Session

_IP: Final = "ip"
_TYPES: Final = ("user", "client-id", _IP)


class DescribeClientQuotasHandler:
    """Serves DescribeClientQuotas."""

    def __init__(self, store: MetadataView) -> None:
        self._store = store

    def __call__(self, session: Session, request: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
        """Answer one DescribeClientQuotas request as the module docstring specifies."""
        ensure_cluster_allowed(session, Operation.DESCRIBE_CONFIGS, ApiKey.DESCRIBE_CLIENT_QUOTAS)
        _check(request.filters)
        return DescribeClientQuotasResponse(
            entries=[
                QuotaEntry(
                    entity=entity_of(entity), values=[QuotaLimit(key=key, value=value) for key, value in values.items()]
                )
                for entity, values in self._store.image.security.quotas.items()
                if _matches(dict(entity), request)
            ]
        )


def _check(filters: Sequence[QuotaFilter]) -> None:
    """Raises BrokerError."""
    types = [each.entity_type for each in filters]
    for each in filters:
        if not each.entity_type:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "Invalid empty entity type.")
        if types.count(each.entity_type) > 1:
            message = f"Entity type {printable(each.entity_type)} cannot appear more than once in the filter."
            raise BrokerError(ErrorCode.INVALID_REQUEST, message)
        if each.entity_type not in _TYPES:
            raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {printable(each.entity_type)}")
        if each.match_type not in (MATCH_EXACT, MATCH_DEFAULT, MATCH_SPECIFIED):
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"Unknown match type {each.match_type}")
        if (each.match_type == MATCH_EXACT) != (each.match is not None):
            raise BrokerError(ErrorCode.INVALID_REQUEST, "A match string belongs to an exact match, and to no other.")
    if _IP in types and len(types) > 1:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "An IP filter cannot be used with user or clientId filters.")


def _matches(entity: Mapping[str, str | None], request: DescribeClientQuotasRequest) -> bool:
    if request.strict and len(entity) != len(request.filters):
        return False
    return all(
        each.entity_type in entity and (each.match_type == MATCH_SPECIFIED or entity[each.entity_type] == each.match)
        for each in request.filters
    )
