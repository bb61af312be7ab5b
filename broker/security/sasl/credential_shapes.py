"""CredentialShapes: the form of the credential that an unknown user of SCRAM is offered.

A client is told a user's salt and iterations before it proves anything. So that they do not reveal which users exist,
the made-up ones have the form of a stored credential of the mechanism, picked by the name: its iterations, the size of
its salt, and Kafka's alphabet if it has that.

The users are at the points of a ring, by an HMAC of their names; a name has the form of the next user. A new user
changes the forms of few names then.
"""

from __future__ import annotations

import hmac
from bisect import bisect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.protocol.sasl.scram_keys import MIN_ITERATIONS, SALT_BYTES

if TYPE_CHECKING:
    from barnabas.broker.metadata.security.image import ScramCredential
    from barnabas.protocol.sasl.scram_keys import ScramMechanism

_DIGITS: Final = b"0123456789abcdefghijklmnopqrstuvwxyz"
_KAFKA_BITS: Final = 130
"""Kafka's clients write a number of 130 bits in base 36 as the salt."""
_KAFKA_DIGITS: Final = range(22, 27)
"""Sizes of such numbers: fewer than one of 2 million has fewer digits."""


class _Shape(NamedTuple):
    iterations: int
    salt_bytes: int
    is_kafka: bool


_DEFAULT: Final = _Shape(MIN_ITERATIONS, SALT_BYTES, False)


class CredentialShapes:
    """Salts and iterations of unknown users of one mechanism."""

    def __init__(self, mechanism: ScramMechanism, secret: bytes) -> None:
        """`secret` is random and never leaves the broker."""
        self._mechanism = mechanism
        self._secret = secret
        self._credentials: Mapping[tuple[str, int], ScramCredential] = {}
        self._points: list[bytes] = []
        self._shapes: list[_Shape] = []

    def made_up(self, credentials: Mapping[tuple[str, int], ScramCredential], user: str) -> tuple[bytes, int]:
        """Return the salt and iterations of a user without a credential. `credentials` is an image's, by user and code.

        They depend on the name, the secret and the stored credentials only.
        """
        if credentials is not self._credentials:
            self._arrange(credentials)
        shape = _DEFAULT
        if self._points:
            shape = self._shapes[bisect(self._points, self._hmac("point", user)) % len(self._points)]
        return self._salt(user, shape), shape.iterations

    def _arrange(self, credentials: Mapping[tuple[str, int], ScramCredential]) -> None:
        ring = sorted(
            (self._hmac("point", user), _shape_of(credential))
            for (user, code), credential in credentials.items()
            if code == self._mechanism.code and credential.iterations >= MIN_ITERATIONS
        )
        self._credentials = credentials
        self._points = [point for point, _ in ring]
        self._shapes = [shape for _, shape in ring]

    def _salt(self, user: str, shape: _Shape) -> bytes:
        salt = b""
        while len(salt) < max(shape.salt_bytes, SALT_BYTES):
            salt += self._hmac(f"salt {len(salt)}", user)
        return _kafka_salt(salt) if shape.is_kafka else salt[: shape.salt_bytes]

    def _hmac(self, purpose: str, user: str) -> bytes:
        return hmac.digest(self._secret, f"{self._mechanism.name} {purpose}:{user}".encode(), "sha256")


def _shape_of(credential: ScramCredential) -> _Shape:
    salt = credential.salt
    is_kafka = len(salt) in _KAFKA_DIGITS and not salt.strip(_DIGITS)
    return _Shape(credential.iterations, len(salt), is_kafka)


def _kafka_salt(random: bytes) -> bytes:
    """Return Kafka's salt of random bytes."""
    number = int.from_bytes(random, "big") % (1 << _KAFKA_BITS)
    digits = bytearray()
    while number:
        number, digit = divmod(number, 36)
        digits.append(_DIGITS[digit])
    return bytes(reversed(digits))
