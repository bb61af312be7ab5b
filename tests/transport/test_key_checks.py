"""Keys that would cost seconds of CPU time: refused by their size, checked without proofs of primality."""

from __future__ import annotations

import base64
import datetime

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from barnabas.transport.errors import TlsConfigError
from barnabas.transport.settings import MappingProperties, TlsSettings
from barnabas.transport.stores import load_key, load_trust
from tests.support.der import SEQUENCE, element, integer
from tests.support.tls import authority_pem, inline_properties


def test_a_large_key_is_refused_before_anything_is_computed_with_it(server_certificate: trustme.LeafCert) -> None:
    values = inline_properties(server_certificate, ssl_keystore_key=rsa_pem(8_676))
    assert refusal(values) == (
        "ssl.keystore.key: the private key has 8676 bits; RSA keys of 2048 to 8192 bits are served"
    )


@pytest.mark.parametrize("bits", [1024, 2040])
def test_a_small_key_is_refused(server_certificate: trustme.LeafCert, bits: int) -> None:
    values = inline_properties(server_certificate, ssl_keystore_key=rsa_pem(bits))
    assert f"the private key has {bits} bits" in refusal(values)


def test_a_key_with_a_long_exponent_is_refused(server_certificate: trustme.LeafCert) -> None:
    values = inline_properties(server_certificate, ssl_keystore_key=rsa_pem(2048, exponent=(1 << 65) + 1))
    assert "the private key has a public exponent of 66 bits; the limit is 64" in refusal(values)


@pytest.mark.parametrize("changed", ["p", "d", "dmp1", "dmq1", "iqmp"])
def test_a_key_whose_numbers_do_not_fit_is_refused(server_certificate: trustme.LeafCert, changed: str) -> None:
    good = {name: value for name, value in RSA_NUMBERS.items() if name != changed}
    values = inline_properties(server_certificate, ssl_keystore_key=pem(**good, **{changed: RSA_NUMBERS[changed] + 2}))
    assert "the private key is damaged" in refusal(values)


def test_an_intact_key_of_another_certificate_passes_the_checks(server_certificate: trustme.LeafCert) -> None:
    values = inline_properties(server_certificate, ssl_keystore_key=pem(**RSA_NUMBERS))
    assert "the first certificate is not that of the private key" in refusal(values)


def test_a_key_of_another_type_is_refused(server_certificate: trustme.LeafCert) -> None:
    key = dsa.generate_private_key(1024)
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    values = inline_properties(server_certificate, ssl_keystore_key=text)
    assert "the private key is not served; the types are RSA, EC, Ed25519 and Ed448" in refusal(values)


def test_a_trusted_certificate_with_a_large_key_is_refused(authority: trustme.CA) -> None:
    values = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority_pem(authority) + certificate("large", 16_392),
    }
    store = TlsSettings.of_client(MappingProperties(values)).truststore
    assert store is not None
    with pytest.raises(TlsConfigError) as refused:
        load_trust(store)
    assert str(refused.value) == (
        "ssl.truststore.certificates: the key of the certificate CN=large has 16392 bits; "
        "RSA keys of up to 16384 bits are served"
    )


def refusal(values: dict[str, str]) -> str:
    store = TlsSettings.of_server(MappingProperties(values)).keystore
    assert store is not None
    with pytest.raises(TlsConfigError) as refused:
        load_key(store)
    return str(refused.value)


def numbers_of(key: rsa.RSAPrivateKey) -> dict[str, int]:
    numbers = key.private_numbers()
    names = ("p", "q", "d", "dmp1", "dmq1", "iqmp")
    return {name: getattr(numbers, name) for name in names} | {"n": numbers.public_numbers.n, "e": 65537}


RSA_NUMBERS = numbers_of(rsa.generate_private_key(65537, 2048))


def rsa_pem(bits: int, exponent: int = 65537) -> str:
    """Return a key of a size, whose other numbers are made up."""
    n = (1 << bits) - 1
    return pem(n=n, e=exponent, d=n - 2, p=(1 << bits // 2) + 1, q=(1 << bits // 2) - 1, dmp1=3, dmq1=3, iqmp=3)


def pem(**numbers: int) -> str:
    """Return a key in PKCS#1, however wrong its numbers are."""
    names = ("n", "e", "d", "p", "q", "dmp1", "dmq1", "iqmp")
    body = element(SEQUENCE, integer(0), *(integer(numbers[name]) for name in names))
    text = base64.encodebytes(body).decode()
    return f"-----BEGIN RSA PRIVATE KEY-----\n{text}-----END RSA PRIVATE KEY-----\n"


def certificate(name: str, bits: int) -> str:
    """Return a certificate of a public RSA key of a size."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(rsa.RSAPublicNumbers(65537, (1 << bits) - 1).public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    )
    return built.public_bytes(Encoding.PEM).decode()
