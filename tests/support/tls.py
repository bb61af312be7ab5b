"""Certificates for tests: one authority, certificates of it, and the files and properties that name them."""

from __future__ import annotations

import ssl
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509 import Certificate, load_pem_x509_certificate

PASSWORD = "store-password"


def pem_bundle(leaf: trustme.LeafCert, *, password: str | None = None) -> str:
    """Return a key and its chain as one PEM text, the key encrypted if there is a password."""
    key = load_pem_private_key(leaf.private_key_pem.bytes(), None)
    encryption = NoEncryption() if password is None else BestAvailableEncryption(password.encode())
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()
    return text + "".join(blob.bytes().decode() for blob in leaf.cert_chain_pems)


def pkcs12(leaf: trustme.LeafCert, password: str = PASSWORD) -> bytes:
    """Return a key and its chain as PKCS12."""
    key = load_pem_private_key(leaf.private_key_pem.bytes(), None)
    assert isinstance(key, EllipticCurvePrivateKey)
    chain = certificates(leaf)
    return serialize_key_and_certificates(
        b"broker",
        key,
        chain[0],
        chain[1:],
        BestAvailableEncryption(password.encode()),
    )


def certificates(leaf: trustme.LeafCert) -> list[Certificate]:
    """Return the chain of `leaf`, its own certificate first."""
    return [load_pem_x509_certificate(blob.bytes()) for blob in leaf.cert_chain_pems]


def authority_pem(authority: trustme.CA) -> str:
    """Return the authority's certificate."""
    return authority.cert_pem.bytes().decode()


def inline_properties(leaf: trustme.LeafCert, authority: trustme.CA | None = None, **more: str) -> dict[str, str]:
    """Return properties with inline PEM; keyword underscores stand for dots."""
    values = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": leaf.private_key_pem.bytes().decode(),
        "ssl.keystore.certificate.chain": "".join(blob.bytes().decode() for blob in leaf.cert_chain_pems),
    }
    if authority is not None:
        values |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authority_pem(authority)}
    return values | {name.replace("_", "."): value for name, value in more.items()}


def trusting(authority: trustme.CA, client: trustme.LeafCert | None = None) -> ssl.SSLContext:
    """Return a client's context, independent of the code under test."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    if client is not None:
        client.configure_cert(context)
    return context


def write_private(path: Path, content: str | bytes) -> Path:
    """Write a file that only its owner reads."""
    path.touch(mode=0o600)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path
