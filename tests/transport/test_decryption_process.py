"""A PKCS12 file or key that takes too long to decrypt is refused at a limit of CPU time, in another process."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from barnabas.transport.contexts import server_context
from barnabas.transport.decryption import CostlyFileError
from barnabas.transport.decryption_process import InChildProcess
from barnabas.transport.errors import TlsConfigError
from barnabas.transport.key_derivation import check_pkcs12
from barnabas.transport.settings import MappingProperties, TlsSettings
from tests.support.der import OCTETS, OID, SEQUENCE, element, integer
from tests.support.tls import PASSWORD, inline_properties, pem_bundle, pkcs12, write_private

PBES2 = bytes.fromhex("2a864886f70d01050d")
PBKDF2 = bytes.fromhex("2a864886f70d01050c")
HMAC_SHA256 = bytes.fromhex("2a864886f70d0209")
AES_256_CBC = bytes.fromhex("60864801650304012a")
DATA = bytes.fromhex("2a864886f70d010701")
ENCRYPTED_DATA = bytes.fromhex("2a864886f70d010706")
SHROUDED_KEY_BAG = bytes.fromhex("2a864886f70d010c0a0102")
EXPLICIT = 0xA0


def test_stores_are_read_as_in_the_own_process(tmp_path: Path, server_certificate: trustme.LeafCert) -> None:
    path = write_private(tmp_path / "broker.p12", pkcs12(server_certificate))
    values = {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": str(path), "ssl.keystore.password": PASSWORD}
    trust = {"ssl.truststore.location": str(path), "ssl.truststore.password": PASSWORD}
    settings = TlsSettings.of_server(MappingProperties(values | trust))
    here, there = server_context(settings), server_context(settings, InChildProcess())
    assert (there.key, there.trust) == (here.key, here.trust)


def test_an_encrypted_key_is_read_and_a_wrong_password_is_refused(server_certificate: trustme.LeafCert) -> None:
    text = pem_bundle(server_certificate, password=PASSWORD)
    values = inline_properties(server_certificate, ssl_keystore_key=text, ssl_key_password=PASSWORD)
    assert server_context(TlsSettings.of_server(MappingProperties(values)), InChildProcess()).key is not None
    values["ssl.key.password"] = "wrong-one"
    with pytest.raises(TlsConfigError, match=r"ssl\.key\.password is wrong, or the key is damaged") as refused:
        server_context(TlsSettings.of_server(MappingProperties(values)), InChildProcess())
    assert "wrong-one" not in str(refused.value)


def test_parameters_in_an_encrypted_part_cannot_hold_the_broker_up() -> None:
    inner = element(SEQUENCE, pbes2((1 << 31) - 1), element(OCTETS, bytes(16)))
    bag = element(SEQUENCE, element(OID, SHROUDED_KEY_BAG), element(EXPLICIT, inner))
    store = encrypted_store(element(SEQUENCE, bag))
    check_pkcs12(store)
    with pytest.raises(CostlyFileError, match="takes more than 1 s of CPU time to decrypt"):
        InChildProcess(cpu_seconds=1).open_pkcs12(store, PASSWORD)


def pbes2(iterations: int) -> bytes:
    """Return the AlgorithmIdentifier of PBES2 with PBKDF2, SHA-256 and AES, with salt and vector of zeros."""
    numbers = element(
        SEQUENCE,
        element(OCTETS, bytes(8)),
        integer(iterations),
        element(SEQUENCE, element(OID, HMAC_SHA256), b"\x05\x00"),
    )
    derivation = element(SEQUENCE, element(OID, PBKDF2), numbers)
    cipher = element(SEQUENCE, element(OID, AES_256_CBC), element(OCTETS, bytes(16)))
    return element(SEQUENCE, element(OID, PBES2), element(SEQUENCE, derivation, cipher))


def encrypted_store(bags: bytes) -> bytes:
    """Return a PKCS12 file without a MAC, whose bags are encrypted."""
    key = hashlib.pbkdf2_hmac("sha256", PASSWORD.encode(), bytes(8), 1)
    padder = PKCS7(128).padder()
    encryptor = Cipher(algorithms.AES(key), modes.CBC(bytes(16))).encryptor()
    encrypted = encryptor.update(padder.update(bags) + padder.finalize()) + encryptor.finalize()
    content = element(SEQUENCE, element(OID, DATA), pbes2(1), element(0x80, encrypted))
    data = element(SEQUENCE, integer(0), content)
    part = element(SEQUENCE, element(OID, ENCRYPTED_DATA), element(EXPLICIT, data))
    safe = element(OCTETS, element(SEQUENCE, part))
    authenticated = element(SEQUENCE, element(OID, DATA), element(EXPLICIT, safe))
    return element(SEQUENCE, integer(3), authenticated)
