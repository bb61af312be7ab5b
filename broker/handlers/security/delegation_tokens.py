"""CreateDelegationToken (38), RenewDelegationToken (39), ExpireDelegationToken (40), DescribeDelegationToken (41).

In this order: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED over PLAINTEXT, for a client without identity, and for one that
logged in with a token; for 38, DELEGATION_TOKEN_AUTHORIZATION_FAILED for another owner without CREATE_TOKENS on that
user, and INVALID_PRINCIPAL_TYPE for an owner or renewers that are no users, because a token's client is the user of its
owner's name; DELEGATION_TOKEN_AUTH_DISABLED without delegation.token.secret.key; the
checks of broker/security/tokens/lifetimes.py. DescribeDelegationToken returns the tokens that the client owns,
requested or may renew, and those that an ACL lets it see: DESCRIBE on the token, or DESCRIBE_TOKENS on the owner.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.broker.handlers.authorization import is_allowed
from barnabas.broker.printable import printable
from barnabas.broker.security.principal import ANONYMOUS, USER_TYPE, Principal
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.delegation_tokens import (
    NO_TIME,
    ChangeDelegationTokenRequest,
    ChangeDelegationTokenResponse,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    DescribedToken,
    TokenPrincipal,
)
from barnabas.protocol.messages.security.resources import Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.broker.metadata.plan import Plan
    from barnabas.broker.metadata.security.image import DelegationToken
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.metadata_changes import MetadataChanges
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe
    from barnabas.broker.security.tokens.lifetimes import TokenLifetimes

logger = logging.getLogger(__name__)


class CreateDelegationTokenHandler:
    """Serves CreateDelegationToken. `tokens` None: the broker has no secret key."""

    def __init__(self, tokens: TokenLifetimes | None, changes: MetadataChanges, probe: ApiProbe) -> None:
        self._tokens = tokens
        self._changes = changes
        self._probe = probe

    async def __call__(self, session: Session, request: CreateDelegationTokenRequest) -> CreateDelegationTokenResponse:
        """Answer one CreateDelegationToken request as the module docstring specifies."""
        requester = owner = session.principal
        if request.owner_name:
            owner = Principal(request.owner_type or "", request.owner_name)
        answer = CreateDelegationTokenResponse(
            owner_type=owner.type, owner_name=owner.name, requester_type=requester.type, requester_name=requester.name
        )
        refusal = _refusal_of_creation(session, request, owner, requester)
        if refusal is not None:
            self._probe.count_error(refusal.name.lower())
            return answer.replaced(error=refusal, issued_ms=NO_TIME, expires_ms=NO_TIME, max_ms=NO_TIME)
        tokens = self._tokens
        try:
            if tokens is None:
                raise _disabled()
            (token,) = await self._changes.change(
                lambda image: tokens.plan_create(
                    image,
                    owner=str(owner),
                    requester=str(requester),
                    renewers=[str(renewer) for renewer in request.renewers],
                    lifetime_ms=request.max_lifetime_ms,
                )
            )
        except BrokerError as error:
            self._probe.count_error(error.code.name.lower())
            return answer.replaced(error=error.code)
        logger.info(
            "delegation token created by %s, token_id=%s owner=%s", session, token.token_id, printable(str(owner))
        )
        return answer.replaced(
            issued_ms=token.issued_ms,
            expires_ms=token.expires_ms,
            max_ms=token.max_ms,
            token_id=token.token_id,
            hmac=tokens.passwords.of(token.token_id),
        )


class ChangeDelegationTokenHandler:
    """Serves RenewDelegationToken and ExpireDelegationToken."""

    def __init__(
        self,
        change: Callable[..., Plan[DelegationToken]] | None,
        verb: str,
        changes: MetadataChanges,
        probe: ApiProbe,
    ) -> None:
        """`change(image, hmac=, requester=, period_ms=)` plans; None: the broker has no secret key."""
        self._change = change
        self._verb = verb
        self._changes = changes
        self._probe = probe

    async def __call__(self, session: Session, request: ChangeDelegationTokenRequest) -> ChangeDelegationTokenResponse:
        """Answer one request as the module docstring specifies."""
        if not _may_use_tokens(session):
            self._probe.count_error(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.name.lower())
            return ChangeDelegationTokenResponse(
                error=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expires_ms=NO_TIME
            )
        change = self._change
        requester = str(session.principal)

        def plan(image: MetadataImage) -> Plan[DelegationToken]:
            if change is None:
                raise _disabled()
            return change(image, hmac=request.hmac, requester=requester, period_ms=request.period_ms)

        try:
            (token,) = await self._changes.change(plan)
        except BrokerError as error:
            self._probe.count_error(error.code.name.lower())
            return ChangeDelegationTokenResponse(error=error.code)
        logger.info("delegation token %s by %s, token_id=%s", self._verb, session, token.token_id)
        return ChangeDelegationTokenResponse(expires_ms=token.expires_ms)


def renew_handler(
    tokens: TokenLifetimes | None, changes: MetadataChanges, probe: ApiProbe
) -> ChangeDelegationTokenHandler:
    """Return the handler of RenewDelegationToken."""
    return ChangeDelegationTokenHandler(None if tokens is None else tokens.plan_renew, "renewed", changes, probe)


def expire_handler(
    tokens: TokenLifetimes | None, changes: MetadataChanges, probe: ApiProbe
) -> ChangeDelegationTokenHandler:
    """Return the handler of ExpireDelegationToken."""
    return ChangeDelegationTokenHandler(None if tokens is None else tokens.plan_expire, "expired", changes, probe)


class DescribeDelegationTokenHandler:
    """Serves DescribeDelegationToken."""

    def __init__(self, tokens: TokenLifetimes | None, store: MetadataView, probe: ApiProbe) -> None:
        self._tokens = tokens
        self._store = store
        self._probe = probe

    def __call__(self, session: Session, request: DescribeDelegationTokenRequest) -> DescribeDelegationTokenResponse:
        """Answer one DescribeDelegationToken request as the module docstring specifies."""
        if not _may_use_tokens(session):
            return self._refuse(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
        if self._tokens is None:
            return self._refuse(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
        passwords = self._tokens.passwords
        owners = None if request.owners is None else {str(owner) for owner in request.owners}
        found = [
            _described(token, passwords.of(token.token_id))
            for token in self._store.image.security.tokens.values()
            if _may_see(session, owners, token)
        ]
        return DescribeDelegationTokenResponse(tokens=found)

    def _refuse(self, code: ErrorCode) -> DescribeDelegationTokenResponse:
        self._probe.count_error(code.name.lower())
        return DescribeDelegationTokenResponse(error=code)


def _may_use_tokens(session: Session) -> bool:
    if session.token_authenticated or session.security_protocol == "PLAINTEXT":
        return False
    return not (session.security_protocol == "SSL" and session.principal == ANONYMOUS)


def _refusal_of_creation(
    session: Session, request: CreateDelegationTokenRequest, owner: Principal, requester: Principal
) -> ErrorCode | None:
    if not _may_use_tokens(session):
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if owner != requester and not is_allowed(
        session, Operation.CREATE_TOKENS, ResourceType.USER, str(owner), ApiKey.CREATE_DELEGATION_TOKEN
    ):
        return ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    if any(kind != USER_TYPE for kind in (owner.type, *(each.type for each in request.renewers))):
        return ErrorCode.INVALID_PRINCIPAL_TYPE
    return None


def _may_see(session: Session, owners: set[str] | None, token: DelegationToken) -> bool:
    """Return whether a token is asked for, and the client may see it."""
    users = {token.owner, token.requester, *token.renewers}
    if owners is not None and users.isdisjoint(owners):
        return False
    if str(session.principal) in users:
        return True
    api = ApiKey.DESCRIBE_DELEGATION_TOKEN
    return is_allowed(session, Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id, api) or is_allowed(
        session, Operation.DESCRIBE_TOKENS, ResourceType.USER, token.owner, api
    )


def _described(token: DelegationToken, hmac: bytes) -> DescribedToken:
    owner, requester = _principal(token.owner), _principal(token.requester)
    return DescribedToken(
        owner_type=owner.type,
        owner_name=owner.name,
        requester_type=requester.type,
        requester_name=requester.name,
        issued_ms=token.issued_ms,
        expires_ms=token.expires_ms,
        max_ms=token.max_ms,
        token_id=token.token_id,
        hmac=hmac,
        renewers=[_principal(renewer) for renewer in token.renewers],
    )


def _principal(text: str) -> TokenPrincipal:
    """Split a principal's text. As in Kafka a renewer's name may be empty, and must not end the list for everyone."""
    kind, _, name = text.partition(":")
    return TokenPrincipal(type=kind, name=name)


def _disabled() -> BrokerError:
    return BrokerError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, "delegation.token.secret.key is not set")
