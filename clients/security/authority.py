"""A certificate authority for development and tests, and the certificates that it issues, with keys of the curve P-256.

Keys are PKCS#8 without a password, the form that Kafka and OpenSSL read; the files' modes protect them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_CLOCK_SKEW = timedelta(minutes=5)


class Authority:
    """A new certificate authority, which issues certificates for servers and clients."""

    def __init__(self, name: str, days: int) -> None:
        """Create the key and the authority's own certificate, valid for `days`."""
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _common_name(name)
        self._certificate = (
            _builder(self._name, self._name, self._key.public_key(), days)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    @property
    def certificate(self) -> str:
        """The authority's certificate as PEM."""
        return _pem(self._certificate)

    @property
    def key(self) -> str:
        """The authority's private key as PEM."""
        return _key_pem(self._key)

    def server(self, hosts: Sequence[str], days: int) -> str:
        """Return key, certificate and authority of a server that is reached by these names and addresses, as PEM."""
        names = x509.SubjectAlternativeName([_alternative_name(host) for host in hosts])
        return self._issue(hosts[0], days, ExtendedKeyUsageOID.SERVER_AUTH, names)

    def client(self, user: str, days: int) -> str:
        """Return key, certificate and authority of a client whose distinguished name is CN=`user`, as PEM."""
        return self._issue(user, days, ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def _issue(
        self, name: str, days: int, usage: x509.ObjectIdentifier, names: x509.SubjectAlternativeName | None
    ) -> str:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(_common_name(name), self._name, key.public_key(), days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        return _key_pem(key) + _pem(builder.sign(self._key, hashes.SHA256())) + self.certificate


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _common_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _alternative_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
