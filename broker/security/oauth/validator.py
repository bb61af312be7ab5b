"""Validation of a JSON Web Token: signature, lifetime, issuer, audience, subject. The JWT library is PyJWT.

Only asymmetric signatures are accepted, and the key decides the algorithm: neither `alg: none` nor a public key used as
a shared secret can pass. As Kafka's BrokerJwtValidator, `exp`, `iat` and the subject are required, and the user is the
subject, without the spaces around it. Reasons for a refusal are for the log and contain nothing of the token.
"""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import jwt

from barnabas.broker.security.oauth.keys import Jwk, KeySource, KeySourceError
from barnabas.config.value import trim
from barnabas.protocol.sasl.oauthbearer import AcceptedToken, RefusedToken
from barnabas.transport.key_checks import RSA_PUBLIC_BITS_MAX, UnusableKeyError, check_public_key

if TYPE_CHECKING:
    from barnabas.config.security.listener_properties import ListenerProperties

_RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_ALGORITHMS: Final = {"RSA": _RSA, "EC": ("ES256", "ES384", "ES512"), "OKP": ("EdDSA",)}
"""By type of key. Symmetric keys (`oct`) are never used."""

_EXPIRES_AT_MAX: Final = ((1 << 63) - 1) // 1000
"""In seconds; Kafka's milliseconds have 64 bits."""

_PUBLIC_MEMBERS: Final = ("kty", "n", "e", "crv", "x", "y")
"""Members of a JWK that describe a public key (RFC 7518)."""

_ALL_ALGORITHMS: Final = tuple(algorithm for several in _ALGORITHMS.values() for algorithm in several)

_NAME_BYTES_MAX: Final = 32_767 - len("User:")
"""A string of Kafka's protocol has at most 32,767 bytes."""

_REASONS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (jwt.ExpiredSignatureError, "the token has expired"),
    (jwt.ImmatureSignatureError, "the token is not valid yet"),
    (jwt.InvalidIssuerError, "the token is of another issuer"),
    (jwt.InvalidAudienceError, "the token is for another audience"),
    (jwt.InvalidAlgorithmError, "the token's algorithm is not accepted"),
    (jwt.MissingRequiredClaimError, "the token lacks a required claim"),
    (jwt.InvalidSignatureError, "the token's signature is wrong"),
)


class _RefusedTokenError(Exception):
    """A token is not valid; `str(error)` is the reason."""


class TokenValidator:
    """Validates tokens by the properties sasl.oauthbearer.* of one listener. Blocks while keys are fetched."""

    def __init__(
        self,
        keys: KeySource,
        *,
        issuer: str | None,
        audiences: tuple[str, ...],
        clock_skew_seconds: int,
        scope_claim: str,
        subject_claim: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`clock` returns the seconds since the epoch."""
        self._keys = keys
        self._issuer = issuer
        self._audiences = audiences
        self._clock_skew_seconds = clock_skew_seconds
        self._scope_claim = scope_claim
        self._subject_claim = subject_claim
        self._clock = clock

    def validate(self, token: str) -> AcceptedToken | RefusedToken:
        """Return the user and the lifetime of a token, or why it is refused."""
        try:
            return self._accept(self._claims(token))
        except _RefusedTokenError as error:
            return RefusedToken(str(error))
        except KeySourceError as error:
            return RefusedToken(f"no signing keys: {error}")
        except jwt.PyJWTError as error:
            reasons = (reason for kind, reason in _REASONS if isinstance(error, kind))
            return RefusedToken(next(reasons, "the token is malformed"))
        # Infinite or huge numbers, and JSON nested beyond the interpreter's limit.
        except (OverflowError, RecursionError, TypeError, ValueError):
            return RefusedToken("the token is malformed")

    def _claims(self, token: str) -> Mapping[str, Any]:
        header = jwt.get_unverified_header(token)
        algorithm = header.get("alg")
        if algorithm not in _ALL_ALGORITHMS:
            raise jwt.InvalidAlgorithmError
        claims: dict[str, Any] = jwt.decode(
            token,
            self._key(header.get("kid"), algorithm),
            algorithms=[algorithm],
            issuer=self._issuer,
            audience=self._audiences or None,
            leeway=self._clock_skew_seconds,
            options={
                "require": ["exp", "iat", self._subject_claim],
                "verify_aud": bool(self._audiences),
                "verify_sub": False,  # `_accept` checks the claim that is configured
                "verify_jti": False,
            },
        )
        return claims

    def _key(self, key_id: str | None, algorithm: str) -> jwt.PyJWK:
        """Return the key that a token's header names, for the algorithm; without a name, the only one that fits."""
        fitting = [
            key for key in self._keys.key_set(key_id) if key_id in (None, key.get("kid")) and _fits(key, algorithm)
        ]
        if len(fitting) != 1:
            raise _RefusedTokenError(
                "the token names no key, and several could be meant" if fitting else "no signing key has the token's id"
            )
        return _public_key(fitting[0], algorithm)

    def _accept(self, claims: Mapping[str, Any]) -> AcceptedToken:
        if not all(type(claims[name]) in (int, float) for name in ("exp", "iat")):
            raise _RefusedTokenError("the token's times are not numbers")
        expires_at = int(claims["exp"])
        if expires_at <= self._clock():  # within the clock skew, too: the session would end with its first request
            raise jwt.ExpiredSignatureError
        if expires_at > _EXPIRES_AT_MAX:
            raise _RefusedTokenError("the token expires too late")
        user = _user_name(claims[self._subject_claim])
        claim = claims.get(self._scope_claim)
        # As in Kafka, a claim of another type counts as no scopes.
        scopes = [claim] if isinstance(claim, str) else claim if isinstance(claim, list) else []
        if not all(isinstance(scope, str) and trim(scope) for scope in scopes):
            raise _RefusedTokenError("the token's scopes are malformed")
        if len({trim(scope) for scope in scopes}) != len(scopes):
            raise _RefusedTokenError("the token has a scope twice")
        return AcceptedToken(user, expires_at * 1000)


def _user_name(subject: object) -> str:
    """Return the user that a claim names. Raises _RefusedTokenError.

    Kafka drops all characters up to U+0020 around the name. Here only spaces are dropped: where people choose the
    claim, other blank or invisible characters around a name would make them look like somebody else, or become them.
    """
    if not isinstance(subject, str) or not (name := subject.strip(" ")):
        raise _RefusedTokenError("the token's subject is not a name")
    categories = [unicodedata.category(character) for character in name]
    if "Cs" in categories:
        raise _RefusedTokenError("the token's subject is not UTF-8")
    if "Cc" in categories or {categories[0][0], categories[-1][0]} & {"C", "Z"}:
        raise _RefusedTokenError("the token's subject has control characters, or invisible ones around it")
    if len(name.encode()) > _NAME_BYTES_MAX:
        raise _RefusedTokenError(f"the token's subject is longer than {_NAME_BYTES_MAX} bytes")
    return name


def _public_key(key: Jwk, algorithm: str) -> jwt.PyJWK:
    """Return a key for verification. Raises _RefusedTokenError for an RSA key of another size than is served.

    Private members, which a key set should not have, are dropped: PyJWT would check each time that they are prime.
    """
    try:
        modulus = key.get("n")
        if isinstance(modulus, str) and len(modulus) * 6 > RSA_PUBLIC_BITS_MAX + 8:
            raise UnusableKeyError(f"has more than {RSA_PUBLIC_BITS_MAX} bits")
        public = jwt.PyJWK({name: key[name] for name in _PUBLIC_MEMBERS if name in key}, algorithm)
        check_public_key(public.key)
    except UnusableKeyError as error:
        raise _RefusedTokenError(f"the token's signing key {error}") from None
    return public


def _fits(key: Jwk, algorithm: str) -> bool:
    """Whether a key verifies signatures of the algorithm."""
    if algorithm not in _ALGORITHMS.get(str(key.get("kty")), ()) or key.get("use", "sig") != "sig":
        return False
    if (
        key.get("kty") == "EC"
        and {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}.get(str(key.get("crv"))) != algorithm
    ):
        return False
    return bool(key.get("alg", algorithm) == algorithm)


def token_validator(properties: ListenerProperties, mechanism: str, keys: KeySource) -> TokenValidator:
    """Return the validator that a listener's properties describe."""
    return TokenValidator(
        keys,
        issuer=properties.get_str("sasl.oauthbearer.expected.issuer", mechanism=mechanism),
        audiences=properties.get_list("sasl.oauthbearer.expected.audience", mechanism=mechanism),
        clock_skew_seconds=properties.get_int("sasl.oauthbearer.clock.skew.seconds", mechanism=mechanism),
        scope_claim=properties.get_str("sasl.oauthbearer.scope.claim.name", mechanism=mechanism) or "scope",
        subject_claim=properties.get_str("sasl.oauthbearer.sub.claim.name", mechanism=mechanism) or "sub",
    )
