"""Encrypted keys and PKCS12 files that require too many iterations are refused before a derivation begins."""

from __future__ import annotations

import base64
import re
import subprocess
from pathlib import Path

import pytest
import trustme

from barnabas.transport.errors import TlsConfigError
from barnabas.transport.settings import MappingProperties, TlsSettings
from barnabas.transport.stores import load_key
from tests.support.tls import PASSWORD, inline_properties, write_private

PBES2 = bytes.fromhex("2a864886f70d01050d")
PBKDF2 = bytes.fromhex("2a864886f70d01050c")
AES_256_CBC = bytes.fromhex("60864801650304012a")
PBE_SHA1_3DES = bytes.fromhex("2a864886f70d010c0103")
SEQUENCE, OID, OCTETS, INTEGER = 0x30, 0x06, 0x04, 0x02


@pytest.fixture
def plain_key(tmp_path: Path, server_certificate: trustme.LeafCert) -> Path:
    return write_private(tmp_path / "plain.pem", server_certificate.private_key_pem.bytes())


def openssl(*arguments: str | Path) -> bytes:
    return subprocess.run(["openssl", *arguments], check=True, capture_output=True).stdout


def encrypted(plain: Path, *options: str) -> bytes:
    """Return the key as PKCS8, DER, encrypted by OpenSSL."""
    return openssl("pkcs8", "-topk8", "-in", plain, "-passout", f"pass:{PASSWORD}", "-outform", "DER", *options)


def der(tag: int, *parts: bytes) -> bytes:
    """Return one element with a content of fewer than 128 bytes."""
    content = b"".join(parts)
    return bytes((tag, len(content))) + content


def pbes2(iterations: int) -> bytes:
    numbers = der(SEQUENCE, der(OCTETS, b"12345678"), der(INTEGER, iterations.to_bytes(4, "big")))
    derivation = der(SEQUENCE, der(OID, PBKDF2), numbers)
    cipher = der(SEQUENCE, der(OID, AES_256_CBC), der(OCTETS, bytes(16)))
    algorithm = der(SEQUENCE, der(OID, PBES2), der(SEQUENCE, derivation, cipher))
    return der(SEQUENCE, algorithm, der(OCTETS, bytes(16)))


def pbes1(iterations: int) -> bytes:
    numbers = der(SEQUENCE, der(OCTETS, b"12345678"), der(INTEGER, iterations.to_bytes(4, "big")))
    return der(SEQUENCE, der(SEQUENCE, der(OID, PBE_SHA1_3DES), numbers), der(OCTETS, bytes(16)))


def pem(key: bytes) -> str:
    body = base64.encodebytes(key).decode()
    return f"-----BEGIN ENCRYPTED PRIVATE KEY-----\n{body}-----END ENCRYPTED PRIVATE KEY-----\n"


def load(values: dict[str, str]) -> None:
    store = TlsSettings.of_server(MappingProperties(values)).keystore
    assert store is not None
    load_key(store)


def refusal(values: dict[str, str]) -> str:
    with pytest.raises(TlsConfigError) as refused:
        load(values)
    return str(refused.value)


@pytest.mark.parametrize("options", [(), ("-v2prf", "hmacWithSHA512"), ("-v1", "PBE-SHA1-3DES"), ("-scrypt",)])
def test_the_keys_that_openssl_writes_are_served(
    server_certificate: trustme.LeafCert, plain_key: Path, options: tuple[str, ...]
) -> None:
    text = pem(encrypted(plain_key, *options))
    load(inline_properties(server_certificate) | {"ssl.keystore.key": text, "ssl.key.password": PASSWORD})


@pytest.mark.parametrize("key", [pbes2(1 << 24), pbes1(1 << 24)], ids=["PBES2", "PBES1"])
def test_a_key_with_many_iterations_is_refused(server_certificate: trustme.LeafCert, key: bytes) -> None:
    values = inline_properties(server_certificate) | {"ssl.keystore.key": pem(key), "ssl.key.password": PASSWORD}

    assert refusal(values) == (
        "ssl.keystore.key contains an encrypted key that requires 16777216 iterations of key derivation; "
        "the limit is 2000000"
    )


def test_a_key_whose_parameters_cannot_be_read_is_refused(server_certificate: trustme.LeafCert) -> None:
    values = inline_properties(server_certificate) | {"ssl.key.password": PASSWORD}
    good = pbes2(2048)
    for damaged in (b"", good[:20], b"\x30\x80" + good[2:], b"\x30\x84\xff\xff\xff\xff", b"\x3f\xff", b"\x30"):
        assert "the key is damaged" in refusal(values | {"ssl.keystore.key": pem(damaged)})


def test_scrypt_with_large_parameters_is_refused(server_certificate: trustme.LeafCert, plain_key: Path) -> None:
    key = encrypted(plain_key, "-scrypt", "-scrypt_N", "16384", "-scrypt_r", "8", "-scrypt_p", "1")
    parameters = bytes.fromhex("02024000020108020101")
    assert parameters in key
    costly = key.replace(parameters, bytes.fromhex("0202400002010802017f"))
    values = inline_properties(server_certificate) | {"ssl.keystore.key": pem(costly), "ssl.key.password": "x"}

    assert refusal(values) == (
        "ssl.keystore.key contains an encrypted key that requires scrypt with N*r*p = 16646144; the limit is 1048576"
    )


def test_the_iterations_of_a_pkcs12_file_are_added_up(
    tmp_path: Path, server_certificate: trustme.LeafCert, plain_key: Path
) -> None:
    chain = write_private(tmp_path / "chain.pem", server_certificate.cert_chain_pems[0].bytes())
    path = tmp_path / "broker.p12"
    values = {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": str(path), "ssl.keystore.password": PASSWORD}
    export = ("pkcs12", "-export", "-inkey", plain_key, "-in", chain, "-passout", f"pass:{PASSWORD}", "-out", path)
    openssl(*export, "-iter", "66000", "-nomaciter")
    load(values)
    written, changed = bytes.fromhex("02030101d0"), bytes.fromhex("02037fffff")
    data = path.read_bytes()
    assert data.count(written) == 2, "one of the certificates and one of the key"

    path.write_bytes(data.replace(written, changed))

    assert re.fullmatch(
        rf"ssl\.keystore\.location={path} requires 1677721[45] iterations of key derivation; the limit is 2000000",
        refusal(values),
    )
