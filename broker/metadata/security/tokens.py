"""Records of delegation tokens: creation, a new expiration, deletion. The checks of requests are the token manager's.

Source: Kafka's DelegationTokenControlManager.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.plan import Plan
from barnabas.broker.metadata.security.image import DelegationToken
from barnabas.broker.metadata.security.snapshot import token_record
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.metadata.levels import TOKENS_FROM
from barnabas.protocol.metadata.security_records import RemoveDelegationTokenRecord

MAX_EXPIRED_AT_ONCE: Final = 1000
"""Kafka's MAX_RECORDS_PER_EXPIRATION."""


def ensure_tokens_supported(image: MetadataImage) -> None:
    """Raise BrokerError UNSUPPORTED_VERSION where `metadata.version` is below 14."""
    if (image.level or 0) < TOKENS_FROM:
        message = "The current metadata.version does not support delegation tokens"
        raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, message)


def plan_put_token(image: MetadataImage, token: DelegationToken) -> Plan[DelegationToken]:
    """Plan a new token, or a new expiration of one; the token is the result. Raises BrokerError (35)."""
    ensure_tokens_supported(image)
    return Plan([token], [token_record(token)])


def plan_remove_tokens(image: MetadataImage, token_ids: Iterable[str]) -> Plan[str]:
    """Plan the deletion of tokens; the results are the ids of those that exist."""
    found = [token_id for token_id in dict.fromkeys(token_ids) if token_id in image.security.tokens]
    return Plan(found, [RemoveDelegationTokenRecord(token_id) for token_id in found])


def plan_remove_expired_tokens(image: MetadataImage, *, now_ms: int) -> Plan[DelegationToken]:
    """Plan the deletion of at most 1,000 expired tokens, which are the results."""
    expired = [each for each in image.security.tokens.values() if each.max_ms < now_ms or each.expires_ms < now_ms]
    expired = expired[:MAX_EXPIRED_AT_ONCE]
    return Plan(expired, [RemoveDelegationTokenRecord(each.token_id) for each in expired])
