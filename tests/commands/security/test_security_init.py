"""`barnabas security init`: files that only their owner reads, that fit together, and that are never overwritten."""

from __future__ import annotations

import ssl
import stat
from pathlib import Path

import pytest

from barnabas.config import load
from barnabas.config.security.jaas import parse_jaas
from barnabas.protocol.sasl.scram_keys import SCRAM_SHA_512, keys_of_password
from tests.support.development import entries, init
from tests.support.storage.metadata_store import opened

FILES = {
    "broker.pem",
    "ca-key.pem",
    "ca.pem",
    "client-tls.properties",
    "client.pem",
    "client.properties",
    "server.properties",
}
PASSWORD = 'with "quotes" \\ and = signs'


@pytest.fixture(scope="module")
def created(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("development")
    (password := directory / "password").write_text(PASSWORD + "\n")
    password.chmod(0o600)
    code, output = init(
        directory / "new" / "secure",
        *("--host", "broker.test", "--host", "10.0.0.5", "--port", "19092", "--user", "alice"),
        *("--password-file", str(password)),
    )
    assert code == 0, output
    assert PASSWORD not in output
    return directory / "new" / "secure"


def test_only_the_owner_can_read_the_files(created: Path) -> None:
    assert {each.name for each in created.iterdir()} == {*FILES, "data"}
    assert stat.S_IMODE(created.stat().st_mode) == 0o700
    assert stat.S_IMODE((created / "data").stat().st_mode) == 0o700
    assert {stat.S_IMODE((created / name).stat().st_mode) for name in FILES} == {0o600}


def test_the_brokers_configuration_loads_without_a_warning(created: Path) -> None:
    config = load(config_file=created / "server.properties")

    assert config.warnings == ()
    assert [str(each) for each in config.listeners] == ["SASL_SSL://127.0.0.1:19092", "SSL://127.0.0.1:19093"]
    assert str(config.advertised_listeners["SASL_SSL"]) == "SASL_SSL://broker.test:19092"
    assert config.log_dirs == (created / "data",)


def test_the_log_directory_has_the_user_and_the_clients_file_its_password(created: Path) -> None:
    settings = entries(created / "client.properties")
    entry = parse_jaas(settings["sasl.jaas.config"])
    assert entry.options == {"username": "alice", "password": PASSWORD}

    with opened(created / "data", ignore_security="true") as store:
        ((name, code), credential), *others = store.store.image.security.scram.items()
    assert not others
    assert (name, code) == ("alice", SCRAM_SHA_512.code)
    expected = keys_of_password(SCRAM_SHA_512, PASSWORD, credential.salt, credential.iterations)
    assert (credential.stored_key, credential.server_key) == (expected.stored_key, expected.server_key)


def handshake(client: ssl.SSLContext, server: ssl.SSLContext, host: str) -> dict[str, object]:
    """Complete a handshake in memory; return the client's certificate as the server sees it."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client.wrap_bio(to_client, to_server, server_hostname=host)
    far = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for each in (near, far):
            try:
                each.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return dict(far.getpeercert() or {})


def contexts(created: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    authority = entries(created / "client-tls.properties")["ssl.truststore.certificates"]
    assert authority + "\n" == (created / "ca.pem").read_text()
    client = ssl.create_default_context(cadata=authority)
    client.load_cert_chain(created / "client.pem")
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(created / "ca.pem"))
    server.verify_mode = ssl.CERT_REQUIRED
    server.load_cert_chain(created / "broker.pem")
    return client, server


@pytest.mark.parametrize("host", ["broker.test", "10.0.0.5"])
def test_client_and_broker_trust_each_other_by_the_names_that_were_given(created: Path, host: str) -> None:
    assert handshake(*contexts(created), host)["subject"] == ((("commonName", "alice"),),)


def test_another_name_of_the_broker_is_refused(created: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        handshake(*contexts(created), "localhost")


def test_the_clients_own_file_has_its_key_and_chain(created: Path) -> None:
    settings = entries(created / "client-tls.properties")

    pem = (created / "client.pem").read_text()
    assert settings["ssl.keystore.key"] + "\n" + settings["ssl.keystore.certificate.chain"] + "\n" == pem


def test_a_random_password_differs_each_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert init(tmp_path / name)[0] == 0
    first, second = (entries(tmp_path / name / "client.properties")["sasl.jaas.config"] for name in ("a", "b"))
    assert first != second


def test_nothing_is_overwritten(created: Path, tmp_path: Path) -> None:
    before = {name: (created / name).read_bytes() for name in FILES}
    code, output = init(created)

    assert (code, output) == (2, f"barnabas: {created} is not empty; nothing was written\n")
    assert {name: (created / name).read_bytes() for name in FILES} == before


@pytest.mark.parametrize("name", ["", "a b", "a=b", "a;b", "ü", "x" * 65])
def test_a_name_that_needs_escapes_is_refused(tmp_path: Path, name: str) -> None:
    code, output = init(tmp_path / "new", "--user", name)

    assert code == 2
    assert "a user's name has 1 to 64 characters" in output
    assert not (tmp_path / "new").exists()
