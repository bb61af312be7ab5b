"""Private keys, certificate chains and trusted certificates, from PEM and PKCS12.

Like Java's default, JKS as a type also reads PKCS12 files; files in the JKS format are refused with the command that
converts them. PEM keys may be PKCS#8, encrypted or not, as in Kafka, and also PKCS#1 and SEC 1. `key_checks` has the
types and sizes of keys that are served.

`cryptography` is imported in the functions: it takes 30 to 50 ms, which a broker without TLS does not pay.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from barnabas.config.security.bounded_file import read_regular_file
from barnabas.transport.decryption import IN_PROCESS, CostlyFileError, Decryption
from barnabas.transport.errors import TlsConfigError
from barnabas.transport.key_checks import UnusableKeyError, check_private_key, check_public_key
from barnabas.transport.key_derivation import CostlyKeyError
from barnabas.transport.settings import PEM, PKCS12

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cryptography.x509 import Certificate

    from barnabas.config.security.secret import Secret
    from barnabas.transport.settings import KeyStore, TrustStore

_JKS_MAGIC: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
"""JKS and JCEKS."""

_PEM_BEGIN: Final = b"-----BEGIN"

_PEM_KEY: Final = re.compile(rb"-----BEGIN ([A-Z0-9 ]*PRIVATE KEY)-----.*?-----END \1-----", re.DOTALL)

_STORE_BYTES_MAX: Final = 16 * 1024 * 1024
"""A file above this is not a store: a wrong path must not fill the memory."""


@dataclass(frozen=True, slots=True, repr=False)
class KeyMaterial:
    """A private key with its chain, whose first certificate is the key's own."""

    key_pem: bytes
    """PKCS#8, unencrypted. Never logged."""
    chain: tuple[Certificate, ...]

    @property
    def chain_pem(self) -> bytes:
        """The chain, the key's own certificate first."""
        from cryptography.hazmat.primitives.serialization import Encoding

        return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in self.chain)


@dataclass(frozen=True, slots=True, repr=False)
class TrustMaterial:
    """Trusted certificates: authorities, or single certificates as in a Java trust store."""

    certificates: tuple[Certificate, ...]

    @property
    def pem(self) -> bytes:
        """All certificates, one after the other."""
        from cryptography.hazmat.primitives.serialization import Encoding

        return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in self.certificates)

    @property
    def der(self) -> bytes:
        """All certificates, concatenated."""
        from cryptography.hazmat.primitives.serialization import Encoding

        return b"".join(certificate.public_bytes(Encoding.DER) for certificate in self.certificates)


def load_key(store: KeyStore, decryption: Decryption = IN_PROCESS) -> KeyMaterial:
    """Load a key store. Blocks. Raises TlsConfigError, which names the property, and the file if there is one."""
    if store.key is not None and store.chain is not None:
        return _key_from_pem(
            store.key.reveal().encode(),
            store.chain.reveal().encode(),
            store.key_password,
            decryption,
            key_name="ssl.keystore.key",
            chain_name="ssl.keystore.certificate.chain",
        )
    path = _location(store.location)
    name = f"ssl.keystore.location={path}"
    data = _read(path, "ssl.keystore.location")
    if store.type == PEM:
        return _key_from_pem(data, data, store.key_password, decryption, key_name=name, chain_name=name)
    _refuse_other_formats(data, path, "ssl.keystore")
    if store.password is None:
        raise TlsConfigError("ssl.keystore.location is set, but ssl.keystore.password is not")
    return _key_from_pkcs12(data, store.password, decryption, name)


def load_trust(store: TrustStore, decryption: Decryption = IN_PROCESS) -> TrustMaterial:
    """Load a trust store. Blocks. Raises TlsConfigError, which names the property, and the file if there is one."""
    name, certificates = _trusted(store, decryption)
    for certificate in certificates:
        _check_trusted(certificate, name)
    return TrustMaterial(certificates)


def _trusted(store: TrustStore, decryption: Decryption) -> tuple[str, tuple[Certificate, ...]]:
    """Return the property, with the file if there is one, and the certificates."""
    if store.certificates is not None:
        name = "ssl.truststore.certificates"
        return name, _pem_certificates(store.certificates.reveal().encode(), name)
    path = _location(store.location)
    name = f"ssl.truststore.location={path}"
    data = _read(path, "ssl.truststore.location")
    if store.type == PEM:
        return name, _pem_certificates(data, name)
    _refuse_other_formats(data, path, "ssl.truststore")
    _, own, others = _open_pkcs12(data, store.password, decryption, name, "ssl.truststore.password")
    certificates = ((own,) if own is not None else ()) + tuple(others)
    if not certificates:
        raise TlsConfigError(f"{name} contains no certificate")
    return name, certificates


def _check_trusted(certificate: Certificate, name: str) -> None:
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        # Lists of public authorities still contain keys of 1,024 bits; OpenSSL uses none of them.
        check_public_key(certificate.public_key(), bits_min=0)
    except UnusableKeyError as error:
        subject = certificate.subject.rfc4514_string()
        raise TlsConfigError(f"{name}: the key of the certificate {subject} {error}") from None
    except (ValueError, UnsupportedAlgorithm):
        return  # OpenSSL decides whether it can use it


def _location(path: Path | None) -> Path:
    assert path is not None, "a store without inline PEM has a location"
    return path


def _read(path: Path, name: str) -> bytes:
    try:
        return read_regular_file(path, _STORE_BYTES_MAX)
    except OSError as error:
        raise TlsConfigError(f"{name}: cannot read {path}: {error.strerror}") from error


def _refuse_other_formats(data: bytes, path: Path, prefix: str) -> None:
    if data.startswith(_JKS_MAGIC):
        raise TlsConfigError(
            f"{prefix}.location={path} is in Java's JKS format, which is not served; convert it with "
            f"`keytool -importkeystore -srckeystore {path} -destkeystore {path.with_suffix('.p12')} "
            f"-deststoretype {PKCS12}` and set {prefix}.location={path.with_suffix('.p12')} and {prefix}.type={PKCS12}"
        )
    if _PEM_BEGIN in data:
        raise TlsConfigError(f"{prefix}.location={path} is a PEM file; set {prefix}.type={PEM}")


def _key_from_pem(
    key_data: bytes,
    chain_data: bytes,
    password: Secret | None,
    decryption: Decryption,
    *,
    key_name: str,
    chain_name: str,
) -> KeyMaterial:
    blocks = [match.group(0) for match in _PEM_KEY.finditer(key_data)]
    if len(blocks) != 1:
        raise TlsConfigError(f"{key_name} contains {len(blocks)} private keys, and must contain one")
    (block,) = blocks
    encrypted = b"ENCRYPTED" in block
    if encrypted and password is None:
        raise TlsConfigError(f"{key_name} contains an encrypted key, and ssl.key.password is not set")
    reason = "ssl.key.password is wrong, or the key is damaged" if encrypted else "the key is damaged"
    damaged = f"{key_name}: cannot read the private key: {reason}"
    if encrypted and password is not None:
        try:
            block = decryption.decrypt_key(block, password.reveal())
        except (CostlyKeyError, CostlyFileError) as error:
            raise TlsConfigError(f"{key_name} contains an encrypted key that {error}") from None
        except ValueError:
            # Without the cause: the library's messages may quote what it was given.
            raise TlsConfigError(damaged) from None
    chain = _pem_certificates(chain_data, chain_name)
    return _key_material(block, chain, key_name=key_name, chain_name=chain_name, damaged=damaged)


def _key_from_pkcs12(data: bytes, password: Secret, decryption: Decryption, name: str) -> KeyMaterial:
    key, own, others = _open_pkcs12(data, password, decryption, name, "ssl.keystore.password")
    if key is None or own is None:
        raise TlsConfigError(f"{name} contains no private key with a certificate")
    chain = _ordered_chain(own, others)
    return _key_material(key, chain, key_name=name, chain_name=name, damaged=f"{name}: the private key is damaged")


def _open_pkcs12(
    data: bytes, password: Secret | None, decryption: Decryption, name: str, password_name: str
) -> tuple[bytes | None, Certificate | None, Sequence[Certificate]]:
    from cryptography.x509 import load_pem_x509_certificate

    try:
        contents = decryption.open_pkcs12(data, None if password is None else password.reveal())
        own = None if contents.own is None else load_pem_x509_certificate(contents.own)
        return contents.key, own, [load_pem_x509_certificate(each) for each in contents.others]
    except (CostlyKeyError, CostlyFileError) as error:
        raise TlsConfigError(f"{name} {error}") from None
    except ValueError:
        raise TlsConfigError(
            f"{name}: cannot open it as PKCS12: {password_name} is wrong or missing, or the file is damaged"
        ) from None


def _key_material(
    pem: bytes, chain: tuple[Certificate, ...], *, key_name: str, chain_name: str, damaged: str
) -> KeyMaterial:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
        load_pem_private_key,
    )

    try:
        private = load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=True)
        check_private_key(private)
    except UnusableKeyError as error:
        raise TlsConfigError(f"{key_name}: the private key {error}") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise TlsConfigError(damaged) from None
    public = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if chain[0].public_key().public_bytes(*public) != private.public_key().public_bytes(*public):
        raise TlsConfigError(f"{chain_name}: the first certificate is not that of the private key")
    return KeyMaterial(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), chain)


def _pem_certificates(data: bytes, name: str) -> tuple[Certificate, ...]:
    from cryptography.x509 import load_pem_x509_certificates

    if b"-----BEGIN CERTIFICATE-----" not in data:
        raise TlsConfigError(f"{name} contains no certificate in PEM")
    try:
        return tuple(load_pem_x509_certificates(data))
    except ValueError:
        raise TlsConfigError(f"{name}: a certificate is damaged") from None


def _ordered_chain(own: Certificate, others: Sequence[Certificate]) -> tuple[Certificate, ...]:
    """Order a PKCS12 file's certificates from the key's own to its authority; drop those of other chains."""
    chain = [own]
    rest = list(others)
    while chain[-1].issuer != chain[-1].subject:
        issuer = next((each for each in rest if each.subject == chain[-1].issuer), None)
        if issuer is None:
            break
        rest.remove(issuer)
        chain.append(issuer)
    return tuple(chain)
