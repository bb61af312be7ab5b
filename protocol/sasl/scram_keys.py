"""Keys of SCRAM (RFC 5802, RFC 7677): what a broker stores instead of a password.

    salted password = PBKDF2(password, salt, iterations)
    client key      = HMAC(salted password, "Client Key")        stored key = H(client key)
    server key      = HMAC(salted password, "Server Key")
    proof           = client key XOR HMAC(stored key, messages)  signature  = HMAC(server key, messages)

A password is used as its UTF-8 bytes, without SASLprep, as Kafka does. Source: Kafka's ScramFormatter.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384
"""Kafka's bounds for new credentials; a login needs the minimum only."""


SALT_BYTES: Final = 24
"""Of every salt that Barnabas makes, also of users that do not exist: its size must not tell which do."""


class ScramMechanism(NamedTuple):
    """`code` as in records and in AlterUserScramCredentials; `digest` is hashlib's name."""

    name: str
    code: int
    digest: str

    @property
    def digest_bytes(self) -> int:
        """Size of every key and signature."""
        return hashlib.new(self.digest).digest_size


SCRAM_SHA_256: Final = ScramMechanism("SCRAM-SHA-256", 1, "sha256")
SCRAM_SHA_512: Final = ScramMechanism("SCRAM-SHA-512", 2, "sha512")
SCRAM_MECHANISMS: Final[Mapping[str, ScramMechanism]] = {each.name: each for each in (SCRAM_SHA_256, SCRAM_SHA_512)}
"""By name."""


class ScramKeys(Protocol):
    """A user's credential as the broker stores it."""

    @property
    def salt(self) -> bytes:
        """Random bytes of the credential."""
        ...

    @property
    def stored_key(self) -> bytes:
        """Verifies the client's proof."""
        ...

    @property
    def server_key(self) -> bytes:
        """Signs the server's answer."""
        ...

    @property
    def iterations(self) -> int:
        """Rounds of PBKDF2."""
        ...


class DerivedKeys(NamedTuple):
    """Keys derived from a password. Confidential."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"DerivedKeys([hidden], iterations={self.iterations})"


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """Derive the key of which all others are made: 2.3 ms for 4096 iterations of SHA-256."""
    return hashlib.pbkdf2_hmac(mechanism.digest, password.encode(), salt, iterations)


def client_key(mechanism: ScramMechanism, salted: bytes) -> bytes:
    """Return the key that proves the password."""
    return hmac.digest(salted, b"Client Key", mechanism.digest)


def stored_key(mechanism: ScramMechanism, key: bytes) -> bytes:
    """Return the hash of a client key."""
    return hashlib.new(mechanism.digest, key).digest()


def server_key(mechanism: ScramMechanism, salted: bytes) -> bytes:
    """Return the server's key."""
    return hmac.digest(salted, b"Server Key", mechanism.digest)


def keys_of_salted(mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int) -> DerivedKeys:
    """Return what a broker stores for a salted password, as AlterUserScramCredentials contains it."""
    stored = stored_key(mechanism, client_key(mechanism, salted))
    return DerivedKeys(salt, stored, server_key(mechanism, salted), iterations)


def keys_of_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> DerivedKeys:
    """Return what a broker stores for a password. Takes milliseconds."""
    return keys_of_salted(mechanism, salted_password(mechanism, password, salt, iterations), salt, iterations)


def xor(left: bytes, right: bytes) -> bytes:
    """Combine two keys of the same size."""
    return bytes(a ^ b for a, b in zip(left, right, strict=True))
