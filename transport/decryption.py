"""Decryption of private keys and PKCS12 files in this process. See `decryption_process` for one with a limit of time.

Results are PEM, so that they can come from another process. A key is PKCS#8 without a password: never log it.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from barnabas.transport.key_derivation import check_encrypted_key, check_pkcs12


class Pkcs12Contents(NamedTuple):
    """Contents of a PKCS12 file, in PEM."""

    key: bytes | None
    own: bytes | None
    """The certificate of the key."""
    others: list[bytes]
    """The other certificates, in the file's order."""


class CostlyFileError(ValueError):
    """A file whose decryption takes too long; `str(error)` is a clause about the file."""


class Decryption(Protocol):
    """Decrypts stores. Both methods block."""

    def decrypt_key(self, pem: bytes, password: str) -> bytes:
        """Decrypt one PEM block. Raises CostlyKeyError, CostlyFileError, or ValueError: damaged or a wrong password."""
        ...

    def open_pkcs12(self, data: bytes, password: str | None) -> Pkcs12Contents:
        """Open a PKCS12 file. Raises as `decrypt_key` does."""
        ...


class InProcess:
    """Decrypts in the calling thread. The parameters that are visible without a password are checked before."""

    def decrypt_key(self, pem: bytes, password: str) -> bytes:
        """See Decryption."""
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        if pem.startswith(b"-----BEGIN ENCRYPTED "):  # else OpenSSL's own form, of one iteration
            check_encrypted_key(pem)
        try:
            key = load_pem_private_key(pem, password.encode(), unsafe_skip_rsa_key_validation=True)
        except (TypeError, UnsupportedAlgorithm) as error:
            raise ValueError("not a private key") from error
        return _pkcs8(key)

    def open_pkcs12(self, data: bytes, password: str | None) -> Pkcs12Contents:
        """See Decryption."""
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization import Encoding
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_key_and_certificates

        check_pkcs12(data)
        try:
            key, own, others = load_key_and_certificates(data, None if password is None else password.encode())
        except UnsupportedAlgorithm as error:
            raise ValueError("not a store") from error
        return Pkcs12Contents(
            None if key is None else _pkcs8(key),
            None if own is None else own.public_bytes(Encoding.PEM),
            [each.public_bytes(Encoding.PEM) for each in others],
        )


IN_PROCESS: Final = InProcess()


def _pkcs8(key: object) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())  # type: ignore[attr-defined,no-any-return]
