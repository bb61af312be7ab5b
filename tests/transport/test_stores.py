"""Key stores and trust stores in every served form, and the text of each refusal."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from barnabas.transport.contexts import client_context, server_context
from barnabas.transport.errors import TlsConfigError
from barnabas.transport.settings import MappingProperties, TlsSettings
from barnabas.transport.stores import load_key, load_trust
from tests.support.tls import (
    PASSWORD,
    authority_pem,
    certificates,
    inline_properties,
    pem_bundle,
    pkcs12,
    write_private,
)


def settings(values: dict[str, str]) -> TlsSettings:
    return TlsSettings.of_server(MappingProperties(values))


def loaded_chain(values: dict[str, str]) -> list[object]:
    store = settings(values).keystore
    assert store is not None
    return list(load_key(store).chain)


def test_the_same_key_from_every_served_form(tmp_path: Path, server_certificate: trustme.LeafCert) -> None:
    expected = certificates(server_certificate)
    pem = write_private(tmp_path / "broker.pem", pem_bundle(server_certificate))
    encrypted = write_private(tmp_path / "encrypted.pem", pem_bundle(server_certificate, password="key-password"))
    p12 = write_private(tmp_path / "broker.p12", pkcs12(server_certificate))
    key = load_pem_private_key(server_certificate.private_key_pem.bytes(), None)
    older = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()
    sec1 = inline_properties(server_certificate) | {"ssl.keystore.key": older}
    forms = [
        {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(pem)},
        {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(encrypted), "ssl.key.password": "key-password"},
        {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": str(p12), "ssl.keystore.password": PASSWORD},
        {"ssl.keystore.location": str(p12), "ssl.keystore.password": PASSWORD},  # Java's JKS type reads PKCS12, too
        inline_properties(server_certificate),
        sec1,
    ]
    for values in forms:
        assert loaded_chain(values) == expected
        assert server_context(settings(values)).key is not None


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"ssl.keystore.type": "JKS"}, "ssl.keystore.key requires ssl.keystore.type=PEM, and the type is JKS"),
        ({"ssl.keystore.certificate.chain": None}, "ssl.keystore.certificate.chain is not"),
        ({"ssl.keystore.key": None}, "ssl.keystore.key is not"),
        ({"ssl.keystore.location": "x"}, "both set"),
        ({"ssl.keystore.password": "secret-1"}, "ssl.key.password"),
        ({"ssl.keystore.key": "nothing"}, "contains 0 private keys"),
        ({"ssl.keystore.certificate.chain": "nothing"}, "contains no certificate"),
        (
            {"ssl.keystore.certificate.chain": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"},
            "damaged",
        ),
        ({"ssl.client.auth": "required"}, "needs trusted certificates"),
        ({"ssl.client.auth": "maybe"}, "is not one of none, requested, required"),
        ({"ssl.enabled.protocols": "TLSv1.1"}, "TLSv1.1 is not served"),
        ({"ssl.cipher.suites": "TLS_NULL"}, "TLS_NULL"),
        ({"ssl.enabled.protocols": "TLSv1.3", "ssl.cipher.suites": "TLS_RSA_WITH_AES_128_GCM_SHA256"}, "no suite"),
        ({"ssl.truststore.type": "BKS"}, "BKS is not served"),
        ({"ssl.truststore.password": "secret-1"}, "ssl.truststore.location is not"),
        ({"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "junk"}, "contains no certificate"),
    ],
)
def test_refusals_name_the_property_and_no_secret(
    server_certificate: trustme.LeafCert, change: dict[str, str | None], text: str
) -> None:
    values = {
        name: value for name, value in (inline_properties(server_certificate) | change).items() if value is not None
    }
    with pytest.raises(TlsConfigError) as refused:
        server_context(settings(values))
    assert text in str(refused.value)
    assert "ssl." in str(refused.value)
    assert "secret-1" not in str(refused.value)


def test_without_a_key_a_server_is_refused() -> None:
    with pytest.raises(TlsConfigError, match=r"set ssl\.keystore\.location"):
        server_context(settings({}))


@pytest.mark.parametrize(
    ("content", "values", "text"),
    [
        (b"\xfe\xed\xfe\xed\0\0\0\2", {"ssl.keystore.password": PASSWORD}, "keytool -importkeystore -srckeystore"),
        (b"-----BEGIN PRIVATE KEY-----", {"ssl.keystore.password": PASSWORD}, "set ssl.keystore.type=PEM"),
        (b"0\x82junk", {"ssl.keystore.password": "wrong"}, "ssl.keystore.password is wrong or missing"),
        (b"0\x82junk", {"ssl.keystore.type": "PKCS12"}, "ssl.keystore.password is not"),
        (b"0\x82junk", {"ssl.keystore.type": "JKS"}, "ssl.keystore.password is not"),
        (None, {"ssl.keystore.type": "PEM"}, "No such file"),
    ],
)
def test_refusals_of_files_say_what_to_do(
    tmp_path: Path, content: bytes | None, values: dict[str, str], text: str
) -> None:
    path = tmp_path / "broker.jks"
    if content is not None:
        write_private(path, content)
    with pytest.raises(TlsConfigError) as refused:
        server_context(settings({"ssl.keystore.location": str(path)} | values))
    assert text in str(refused.value)
    assert str(path) in str(refused.value) or "password is not" in text


@pytest.mark.parametrize("kind", ["fifo", "device", "directory", "large"])
def test_only_regular_files_of_limited_size_are_read_as_stores(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "store"
    problem = "Not a regular file"
    if kind == "fifo":
        os.mkfifo(path, 0o600)
    elif kind == "device":
        path = Path("/dev/zero")
    elif kind == "directory":
        path.mkdir()
        problem = "Is a directory"
    else:
        with path.open("wb") as file:
            file.truncate(16 * 1024 * 1024 + 1)
        problem = "Larger than 16777216 bytes"
    for name in ("ssl.keystore", "ssl.truststore"):
        values = {f"{name}.type": "PEM", f"{name}.location": str(path)}
        with pytest.raises(TlsConfigError) as refused:
            load_store(name, settings(values))
        assert str(refused.value) == f"{name}.location: cannot read {path}: {problem}"


def load_store(name: str, tls: TlsSettings) -> None:
    if name == "ssl.keystore":
        assert tls.keystore is not None
        load_key(tls.keystore)
    else:
        assert tls.truststore is not None
        load_trust(tls.truststore)


def test_a_wrong_or_missing_key_password_is_said_without_it(
    tmp_path: Path, server_certificate: trustme.LeafCert
) -> None:
    path = write_private(tmp_path / "k.pem", pem_bundle(server_certificate, password="right"))
    values = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(path)}
    with pytest.raises(TlsConfigError, match=r"ssl\.key\.password is not set"):
        server_context(settings(values))
    with pytest.raises(TlsConfigError, match=r"ssl\.key\.password is wrong") as refused:
        server_context(settings(values | {"ssl.key.password": "wrong-one"}))
    assert "wrong-one" not in str(refused.value)


def test_a_key_of_another_certificate_is_refused(
    server_certificate: trustme.LeafCert, client_certificate: trustme.LeafCert
) -> None:
    values = inline_properties(server_certificate)
    values["ssl.keystore.key"] = client_certificate.private_key_pem.bytes().decode()
    with pytest.raises(TlsConfigError, match="not that of the private key"):
        server_context(settings(values))


def test_trust_stores_in_every_served_form(tmp_path: Path, authority: trustme.CA) -> None:
    pem = write_private(tmp_path / "ca.pem", authority_pem(authority))
    expected = authority_pem(authority)
    for values in (
        {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(pem)},
        {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": expected},
    ):
        store = settings(values).truststore
        assert store is not None
        found = [each.public_bytes(Encoding.PEM).decode() for each in load_trust(store).certificates]
        assert found == [expected]
        assert client_context(TlsSettings.of_client(MappingProperties(values))).trust is not None


@pytest.mark.skipif(shutil.which("keytool") is None, reason="keytool is not installed")
def test_a_trust_store_that_keytool_wrote(tmp_path: Path, authority: trustme.CA) -> None:
    pem = write_private(tmp_path / "ca.pem", authority_pem(authority))
    path = tmp_path / "trust.p12"
    subprocess.run(
        ["keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", pem, "-keystore", path, "-storetype", "PKCS12",
         "-storepass", PASSWORD],
        check=True,
        capture_output=True,
    )  # fmt: skip
    values = {
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": str(path),
        "ssl.truststore.password": PASSWORD,
    }
    store = settings(values).truststore
    assert store is not None
    assert [each.public_bytes(Encoding.PEM).decode() for each in load_trust(store).certificates] == [
        authority_pem(authority)
    ]


def test_suites_choose_versions_and_ciphers(server_certificate: trustme.LeafCert) -> None:
    older = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
    built = server_context(settings(inline_properties(server_certificate, ssl_cipher_suites=older)))
    assert built.context.maximum_version.name == "TLSv1_2"
    names = {each["name"] for each in built.context.get_ciphers() if each["protocol"] == "TLSv1.2"}
    assert names == {"ECDHE-ECDSA-AES128-GCM-SHA256"}
    both = f"{older},TLS_AES_128_GCM_SHA256"
    built = server_context(settings(inline_properties(server_certificate, ssl_cipher_suites=both)))
    assert built.context.maximum_version.name == "TLSv1_3"
    assert built.unrestricted_suites == ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")


def test_no_text_of_the_settings_shows_a_secret(server_certificate: trustme.LeafCert) -> None:
    values = inline_properties(server_certificate, ssl_key_password="secret-2")
    read = settings(values)
    built = server_context(read)
    shown = f"{read} {read!r} {built!r} {built.key!r}"
    assert "secret-2" not in shown
    assert "PRIVATE KEY" not in shown
