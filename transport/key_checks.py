"""Checks of keys that clients can alter: types and sizes that a broker can compute with, in microseconds.

OpenSSL's own check of an RSA key proves that its factors are prime: 0.05 s with 2,048 bits, 5 s with 8,192, and it
holds the interpreter's lock. Keys are therefore loaded without it, and the equations between their numbers are checked
instead, as Java does: a key that fulfills them signs correctly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

RSA_BITS_MIN: Final = 2048
"""OpenSSL's minimum at its default security level, and jose4j's, Kafka's library for signed tokens."""

RSA_PRIVATE_BITS_MAX: Final = 8192
"""Each handshake signs once: 1 ms with 2,048 bits, 50 ms with 8,192, and eight times as long with 16,384."""

RSA_PUBLIC_BITS_MAX: Final = 16_384
"""OpenSSL refuses larger keys at every signature."""

RSA_EXPONENT_BITS_MAX: Final = 64
"""Bits of the public exponent, of which each verification takes a step. Tools write 65537."""


class UnusableKeyError(ValueError):
    """A key that is not served; `str(error)` is a clause about the key."""


def check_private_key(key: PrivateKeyTypes) -> None:
    """Check type, size and numbers of a key that was loaded without OpenSSL's check. Raises UnusableKeyError."""
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    if isinstance(key, RSAPrivateKey):
        _check_size(key.key_size, RSA_PRIVATE_BITS_MAX)
        _check_numbers(key)
    elif not isinstance(key, EllipticCurvePrivateKey | Ed25519PrivateKey | Ed448PrivateKey):
        raise UnusableKeyError("is not served; the types are RSA, EC, Ed25519 and Ed448")


def check_public_key(key: object, *, bits_min: int = RSA_BITS_MIN) -> None:
    """Check the size of a public key that verifies signatures. Raises UnusableKeyError."""
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    if isinstance(key, RSAPublicKey):
        _check_size(key.key_size, RSA_PUBLIC_BITS_MAX, bits_min)
        _check_exponent(key.public_numbers().e)


def _check_size(bits: int, bits_max: int, bits_min: int = RSA_BITS_MIN) -> None:
    if not bits_min <= bits <= bits_max:
        sizes = f"{bits_min} to {bits_max}" if bits_min else f"up to {bits_max}"
        raise UnusableKeyError(f"has {bits} bits; RSA keys of {sizes} bits are served")


def _check_exponent(exponent: int) -> None:
    if exponent.bit_length() > RSA_EXPONENT_BITS_MAX:
        raise UnusableKeyError(
            f"has a public exponent of {exponent.bit_length()} bits; the limit is {RSA_EXPONENT_BITS_MAX}"
        )


def _check_numbers(key: RSAPrivateKey) -> None:
    numbers = key.private_numbers()
    n, e = numbers.public_numbers.n, numbers.public_numbers.e
    _check_exponent(e)
    p, q = numbers.p, numbers.q
    holds = (
        min(p, q) > 2
        and p * q == n
        and e * numbers.d % (p - 1) == 1
        and e * numbers.d % (q - 1) == 1
        and numbers.dmp1 == numbers.d % (p - 1)
        and numbers.dmq1 == numbers.d % (q - 1)
        and q * numbers.iqmp % p == 1
    )
    if not holds:
        raise UnusableKeyError("is damaged")
