"""Plans that create, renew and expire delegation tokens, with Kafka's checks in Kafka's order.

    62 DELEGATION_TOKEN_NOT_FOUND        no token has the HMAC
    66 DELEGATION_TOKEN_EXPIRED          it has ended already
    63 DELEGATION_TOKEN_OWNER_MISMATCH   the requester is neither its owner nor one of its renewers
    35 UNSUPPORTED_VERSION               `metadata.version` is below 14

A token ends at the latest after delegation.token.max.lifetime.ms, and before unless it is renewed, each time for at
most delegation.token.expiry.time.ms. Source: Kafka's DelegationTokenControlManager.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.plan import Plan
from barnabas.broker.metadata.security.image import DelegationToken
from barnabas.broker.metadata.security.tokens import ensure_tokens_supported, plan_put_token, plan_remove_tokens
from barnabas.broker.security.tokens.passwords import TokenPasswords
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.uuids import random_uuid, uuid_text

if TYPE_CHECKING:
    from barnabas.config import BrokerConfig

_MAX_TIME: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class TokenLifetimes:
    """The rules of one broker. Principals are texts, such as `User:alice`; a plan raises BrokerError."""

    passwords: TokenPasswords
    wall_ms: Callable[[], int]
    max_lifetime_ms: int
    expiry_ms: int

    def plan_create(
        self, image: MetadataImage, *, owner: str, requester: str, renewers: Sequence[str], lifetime_ms: int
    ) -> Plan[DelegationToken]:
        """Plan a token; `lifetime_ms` below 1 is the maximum."""
        ensure_tokens_supported(image)
        now_ms = self.wall_ms()
        lifetime_ms = min(self.max_lifetime_ms, lifetime_ms) if lifetime_ms > 0 else self.max_lifetime_ms
        max_ms = _after(now_ms, lifetime_ms)
        expires_ms = min(max_ms, _after(now_ms, self.expiry_ms))
        token_id = uuid_text(random_uuid())
        return plan_put_token(
            image, DelegationToken(token_id, owner, requester, tuple(renewers), now_ms, max_ms, expires_ms)
        )

    def plan_renew(self, image: MetadataImage, *, hmac: bytes, requester: str, period_ms: int) -> Plan[DelegationToken]:
        """Plan a later end: after `period_ms`, or expiry_ms if that is less or `period_ms` is below 1."""
        token = self._token(image, hmac)
        now_ms = self.wall_ms()
        _ensure_alive(token, now_ms)
        _ensure_of(token, requester)
        period_ms = min(self.expiry_ms, period_ms) if period_ms > 0 else self.expiry_ms
        return plan_put_token(image, token._replace(expires_ms=min(token.max_ms, _after(now_ms, period_ms))))

    def plan_expire(
        self, image: MetadataImage, *, hmac: bytes, requester: str, period_ms: int
    ) -> Plan[DelegationToken]:
        """Plan an end after `period_ms`, or the deletion if that is negative."""
        token = self._token(image, hmac)
        now_ms = self.wall_ms()
        _ensure_of(token, requester)
        if period_ms < 0:
            removal = plan_remove_tokens(image, [token.token_id])
            return Plan([token._replace(expires_ms=now_ms)], removal.records)
        _ensure_alive(token, now_ms)
        return plan_put_token(image, token._replace(expires_ms=min(token.max_ms, _after(now_ms, period_ms))))

    def _token(self, image: MetadataImage, hmac: bytes) -> DelegationToken:
        ensure_tokens_supported(image)
        token = self.passwords.find(image.security.tokens, hmac)
        if token is None:
            raise BrokerError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "no delegation token has this HMAC")
        return token


def token_lifetimes(config: BrokerConfig, wall_ms: Callable[[], int]) -> TokenLifetimes | None:
    """Return the rules that the configuration describes; None: delegation.token.secret.key is not set."""
    secret = config.get_secret("delegation.token.secret.key")
    if secret is None:
        return None
    return TokenLifetimes(
        TokenPasswords(secret),
        wall_ms,
        config.get_int("delegation.token.max.lifetime.ms"),
        config.get_int("delegation.token.expiry.time.ms"),
    )


def _after(now_ms: int, period_ms: int) -> int:
    return min(now_ms + period_ms, _MAX_TIME)


def _ensure_alive(token: DelegationToken, now_ms: int) -> None:
    if token.max_ms < now_ms or token.expires_ms < now_ms:
        raise BrokerError(ErrorCode.DELEGATION_TOKEN_EXPIRED, f"delegation token {token.token_id} has expired")


def _ensure_of(token: DelegationToken, requester: str) -> None:
    if requester != token.owner and requester not in token.renewers:
        message = f"delegation token {token.token_id} is of another owner, who did not name the requester as a renewer"
        raise BrokerError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, message)
