"""Validation of tokens: what Kafka requires, and attacks on the signature."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from datetime import UTC
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.security.oauth.keys import Jwk, KeySourceError, parse_key_set
from barnabas.broker.security.oauth.validator import TokenValidator
from barnabas.protocol.sasl.oauthbearer import AcceptedToken, RefusedToken

RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC = ec.generate_private_key(ec.SECP256R1())
EC_384 = ec.generate_private_key(ec.SECP384R1())
ED = ed25519.Ed25519PrivateKey.generate()

NOW = 1_800_000_000
CLAIMS: dict[str, Any] = {"sub": "alice", "iss": "https://idp", "aud": ["kafka", "x"], "iat": NOW - 10, "exp": NOW + 60}


def jwk(algorithm: type[Any], key: Any, **more: str) -> Jwk:
    return {**json.loads(algorithm.to_jwk(key.public_key())), **more}


KEYS = (
    jwk(jwt.algorithms.RSAAlgorithm, RSA, kid="rsa"),
    jwk(jwt.algorithms.ECAlgorithm, EC, kid="ec"),
    jwk(jwt.algorithms.ECAlgorithm, EC_384, kid="ec-384"),
    jwk(jwt.algorithms.OKPAlgorithm, ED, kid="ed"),
    jwk(jwt.algorithms.RSAAlgorithm, OTHER_RSA, kid="encryption", use="enc"),
    {"kty": "oct", "kid": "shared", "k": base64.urlsafe_b64encode(b"s" * 32).decode()},
)


class Keys:
    def __init__(self, *keys: Jwk) -> None:
        self.keys = keys

    def key_set(self, wanted: str | None) -> tuple[Jwk, ...]:
        if not self.keys:
            raise KeySourceError("the provider cannot be reached")
        return self.keys


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set PyJWT's clock, which it reads itself, to NOW."""
    from datetime import datetime

    class Fixed(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.fromtimestamp(NOW, UTC)

    monkeypatch.setattr("jwt.api_jwt.datetime", Fixed)


def validator(*keys: Jwk, **changed: Any) -> TokenValidator:
    settings: dict[str, Any] = {
        "issuer": "https://idp",
        "audiences": ("kafka",),
        "clock_skew_seconds": 5,
        "scope_claim": "scope",
        "subject_claim": "sub",
        "clock": lambda: NOW,
    }
    return TokenValidator(Keys(*(keys or KEYS)), **{**settings, **changed})


def sign(key: Any = RSA, algorithm: str = "RS256", kid: str | None = "rsa", **claims: Any) -> str:
    given = {name: value for name, value in {**CLAIMS, **claims}.items() if value is not None}
    return jwt.encode(given, key, algorithm, headers=None if kid is None else {"kid": kid})


@pytest.mark.parametrize(
    ("key", "algorithm", "kid"),
    [
        (RSA, "RS256", "rsa"),
        (RSA, "RS512", "rsa"),
        (RSA, "PS384", "rsa"),
        (EC, "ES256", "ec"),
        (EC_384, "ES384", "ec-384"),
        (ED, "EdDSA", "ed"),
        (ED, "EdDSA", None),
    ],
)
def test_each_algorithm(key: Any, algorithm: str, kid: str | None) -> None:
    assert validator().validate(sign(key, algorithm, kid)) == AcceptedToken("alice", (NOW + 60) * 1000)


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"exp": NOW - 6}, "the token has expired"),
        ({"exp": NOW - 4}, "the token has expired"),  # the session would end at once
        ({"exp": NOW}, "the token has expired"),
        ({"exp": 1e30}, "the token expires too late"),
        ({"exp": 9_223_372_036_854_776}, "the token expires too late"),
        ({"exp": None}, "lacks a required claim"),
        ({"iat": None}, "lacks a required claim"),
        ({"sub": None}, "lacks a required claim"),
        ({"nbf": NOW + 6}, "not valid yet"),
        ({"iss": "https://other"}, "another issuer"),
        ({"iss": None}, "lacks a required claim"),
        ({"aud": "other"}, "another audience"),
        ({"aud": None}, "lacks a required claim"),
        ({"sub": ""}, "subject is not a name"),
        ({"sub": "  "}, "subject is not a name"),
        ({"sub": ["alice"]}, "subject is not a name"),
        ({"scope": [""]}, "scopes are malformed"),
        ({"scope": ["a", "a "]}, "a scope twice"),
        ({"exp": str(NOW + 60)}, "times are not numbers"),
    ],
)
def test_claims(claims: dict[str, Any], reason: str) -> None:
    refused = validator().validate(sign(**claims))
    assert isinstance(refused, RefusedToken)
    assert reason in refused.reason


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": 9_223_372_036_854_775},
        {"nbf": NOW + 4},
        {"iat": NOW + 4},
        {"scope": "a b"},
        {"scope": ["a", "b"]},
        {"scope": 7},
        {"scope": None},
    ],
)
def test_the_clock_may_be_off_and_scopes_may_be_given(claims: dict[str, Any]) -> None:
    assert isinstance(validator().validate(sign(**claims)), AcceptedToken)


def test_issuer_audience_and_subject_as_configured() -> None:
    free = validator(issuer=None, audiences=(), subject_claim="client")
    assert free.validate(sign(iss="x", aud=None, sub=7, client=" edge ")) == AcceptedToken("edge", (NOW + 60) * 1000)


@pytest.mark.parametrize(
    ("subject", "user"),
    [
        (" admin ", "admin"),  # as in Kafka
        ("\u00a0admin", None),
        ("admin\u3000", None),
        ("\u2003admin\u2028", None),
        ("admin\x85", None),
        ("\u200badmin", None),
        ("admin\ufeff", None),
        ("\tadmin", None),  # Kafka: admin
        ("admin\0", None),  # Kafka: admin
        ("a\nb", None),
        ("\ud800x", None),
        ("\u00e9" * 16_382, None),
        ("\u00e9" * 16_381, "\u00e9" * 16_381),
        ("Zoë\u00a0B", "Zoë\u00a0B"),
        ("\u0645\u06cc\u200c\u062e", "\u0645\u06cc\u200c\u062e"),  # a joiner within a Persian word
    ],
)
def test_no_subject_becomes_another_user_by_what_cannot_be_seen(subject: str, user: str | None) -> None:
    result = validator().validate(sign(sub=subject))
    assert (result.user if isinstance(result, AcceptedToken) else None) == user


def test_scopes_are_trimmed_as_in_java() -> None:
    assert isinstance(validator().validate(sign(scope=["a", "a\u00a0"])), AcceptedToken)
    assert isinstance(validator().validate(sign(scope=["a", "\x01a"])), RefusedToken)


def forged(header: dict[str, Any], signature: Callable[[bytes], bytes]) -> str:
    """Encode a token by hand, because PyJWT refuses to write these."""
    parts = [base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=") for each in (header, CLAIMS)]
    signed = b".".join(parts)
    return (signed + b"." + base64.urlsafe_b64encode(signature(signed)).rstrip(b"=")).decode()


PUBLIC_PEM = RSA.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


@pytest.mark.parametrize(
    "token",
    [
        forged({"alg": "none", "kid": "rsa"}, lambda _: b""),
        forged({"alg": "None"}, lambda _: b""),
        forged({"kid": "rsa"}, lambda _: b""),
        # The public key of RS256 as the secret of HS256.
        forged({"alg": "HS256", "kid": "rsa"}, lambda data: hmac.digest(PUBLIC_PEM, data, hashlib.sha256)),
        forged({"alg": "HS256", "kid": "shared"}, lambda data: hmac.digest(b"s" * 32, data, hashlib.sha256)),
        # Algorithms of another type of key than the named one.
        sign(RSA, "RS256", "ec"),
        sign(EC, "ES256", "rsa"),
        sign(EC, "ES256", "ec-384"),
        sign(OTHER_RSA, "RS256", "rsa"),
        sign(OTHER_RSA, "RS256", "encryption"),
        sign(RSA, "RS256", "unknown"),
        # Keys that the token brings along.
        jwt.encode(CLAIMS, OTHER_RSA, "RS256", headers={"jwk": dict(jwk(jwt.algorithms.RSAAlgorithm, OTHER_RSA))}),
        sign()[:-4] + "AAAA",
        sign().rsplit(".", 1)[0] + ".",
    ],
)
def test_forged_tokens(token: str) -> None:
    assert isinstance(validator().validate(token), RefusedToken)


@pytest.mark.parametrize(
    ("bits", "exponent", "reason"),
    [
        (2040, 65537, "has 2040 bits; RSA keys of 2048 to 16384 bits are served"),
        (16_392, 65537, "has 16392 bits; RSA keys of 2048 to 16384 bits are served"),
        (4_000_000, 65537, "has more than 16384 bits"),
        (2048, (1 << 64) + 1, "has a public exponent of 65 bits; the limit is 64"),
    ],
)
def test_signing_keys_of_other_sizes_are_refused(bits: int, exponent: int, reason: str) -> None:
    numbers = {"n": number((1 << bits) - 1), "e": number(exponent)}
    refused = validator({"kty": "RSA", "kid": "rsa", **numbers}).validate(sign())
    assert refused == RefusedToken(f"the token's signing key {reason}")


def test_the_private_members_of_a_signing_key_are_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("OpenSSL would check the factors at each login")

    private = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(RSA))
    assert "d" in private
    monkeypatch.setattr("jwt.algorithms.RSAPrivateNumbers", refuse)
    assert isinstance(validator({**private, "kid": "rsa"}).validate(sign()), AcceptedToken)


def number(value: int) -> str:
    """Return an integer as a member of a JWK."""
    return encoded(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def test_a_token_without_a_key_id_needs_a_single_fitting_key() -> None:
    two = (KEYS[0], jwk(jwt.algorithms.RSAAlgorithm, OTHER_RSA, kid="rsa-2"))
    assert isinstance(validator(*two).validate(sign(kid=None)), RefusedToken)
    assert isinstance(validator(two[0]).validate(sign(kid=None)), AcceptedToken)


def encoded(text: bytes) -> str:
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


@pytest.mark.parametrize(
    "claims",
    [
        b"[" * 40_000,
        b'{"exp":' + b"9" * 5_000 + b',"iat":1,"sub":"a"}',
        b'{"exp":Infinity,"iat":1,"sub":"a","iss":"https://idp","aud":"kafka"}',
        b'{"exp":NaN,"iat":1,"sub":"a","iss":"https://idp","aud":"kafka"}',
        b'{"exp":1e999,"iat":1,"sub":"a","iss":"https://idp","aud":"kafka"}',
        b"[]",
        b"\xff",
        b"",
    ],
)
def test_hostile_claims_with_a_good_signature(claims: bytes) -> None:
    signed = f"{encoded(json.dumps({'alg': 'EdDSA', 'kid': 'ed'}).encode())}.{encoded(claims)}"
    token = f"{signed}.{encoded(ED.sign(signed.encode()))}"
    assert isinstance(validator().validate(token), RefusedToken)


@pytest.mark.parametrize("header", [b"[" * 40_000, b"[]", b"{}", b'{"alg":1}', b'{"alg":"RS256","kid":{}}', b"\xff"])
def test_hostile_headers(header: bytes) -> None:
    assert isinstance(validator().validate(f"{encoded(header)}.{encoded(b'{}')}.AAAA"), RefusedToken)


@given(st.text(alphabet="abcXYZ019-_.=~+/", max_size=60))
def test_any_text_is_refused(token: str) -> None:
    assert isinstance(validator().validate(token), RefusedToken)


def test_reasons_contain_nothing_of_the_token() -> None:
    token = sign(sub="canary-4711", iss="canary-4712")
    refused = validator().validate(token)
    assert isinstance(refused, RefusedToken)
    assert "canary" not in refused.reason


def test_without_keys_the_reason_names_the_provider() -> None:
    refused = TokenValidator(
        Keys(), issuer=None, audiences=(), clock_skew_seconds=0, scope_claim="scope", subject_claim="sub"
    ).validate(sign())
    assert refused == RefusedToken("no signing keys: the provider cannot be reached")


@pytest.mark.parametrize("text", [b"", b"[]", b'{"keys": {}}', b'{"keys": [1]}', b"[" * 100_000])
def test_a_key_set_that_is_none(text: bytes) -> None:
    with pytest.raises(KeySourceError, match="the address is not"):
        parse_key_set(text, "the address")
