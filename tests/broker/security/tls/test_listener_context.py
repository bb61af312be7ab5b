"""A listener's context follows its files and properties, and keeps what it has when they are faulty."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import pytest
import trustme

from barnabas.broker.security.tls.listener_context import ListenerContext
from barnabas.config.security.listener_properties import ListenerProperties
from barnabas.transport.errors import TlsConfigError
from barnabas.transport.settings import MappingProperties
from tests.support.tls import certificates, pem_bundle, write_private


class Properties(MappingProperties):
    listener = "SSL"
    security_protocol = "SSL"

    def __init__(self, values: dict[str, str]) -> None:
        super().__init__(values)
        self.values = values

    def get_bool(self, name: str) -> bool:
        return self.values.get(name) == "true"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def issue(authority: trustme.CA, *names: str, unit: str = "tests") -> trustme.LeafCert:
    return authority.issue_cert(*names, common_name="broker", organization_unit_name=unit)


class Listener:
    """A context on a PEM file of its own."""

    def __init__(self, directory: Path, leaf: trustme.LeafCert) -> None:
        self.path = write_private(directory / "broker.pem", pem_bundle(leaf))
        self.values = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.path)}
        self.context = ListenerContext(cast("ListenerProperties", Properties(self.values)))
        self.context.load()

    def replace(self, content: str) -> None:
        following = write_private(self.path.with_suffix(".next"), content)
        following.rename(self.path)


def test_an_unchanged_file_is_not_read_again(tmp_path: Path, authority: trustme.CA) -> None:
    listener = Listener(tmp_path, issue(authority, "a.example"))
    first = listener.context.current()
    assert not listener.context.refresh()
    assert listener.context.current() is first


def test_a_new_file_is_a_new_context(tmp_path: Path, authority: trustme.CA) -> None:
    listener = Listener(tmp_path, issue(authority, "a.example"))
    first = listener.context.current()
    newer = issue(authority, "a.example", "b.example")
    listener.replace(pem_bundle(newer))
    assert listener.context.refresh()
    assert listener.context.current() is not first
    assert listener.context.expires_at == min(each.not_valid_after_utc.timestamp() for each in certificates(newer))
    assert (listener.context.reloads, listener.context.failures) == (1, 0)


def test_a_file_of_the_same_size_and_time_but_another_inode_has_changed(tmp_path: Path, authority: trustme.CA) -> None:
    listener = Listener(tmp_path, issue(authority, "a.example"))
    before = listener.path.stat()
    listener.replace(listener.path.read_text())
    os.utime(listener.path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert listener.context.refresh()


@pytest.mark.parametrize(
    ("names", "unit", "allowing", "text"),
    [
        (("a.example",), "others", "ssl.allow.dn.changes", "not CN=broker,OU=tests"),
        (("b.example",), "tests", "ssl.allow.san.changes", "lacks the subject alternative names a.example"),
    ],
)
def test_another_servers_certificate_is_refused_unless_allowed(
    tmp_path: Path,
    authority: trustme.CA,
    caplog: pytest.LogCaptureFixture,
    names: tuple[str, ...],
    unit: str,
    allowing: str,
    text: str,
) -> None:
    listener = Listener(tmp_path, issue(authority, "a.example"))
    first = listener.context.current()
    other = pem_bundle(issue(authority, *names, unit=unit))
    listener.replace(other)
    assert not listener.context.refresh()
    assert text in caplog.text
    assert allowing in caplog.text
    # The same fault is logged once.
    assert not listener.context.refresh()
    assert (listener.context.current() is first, listener.context.failures) == (True, 1)
    listener.values[allowing] = "true"
    listener.replace(other)
    assert listener.context.refresh()


def test_faulty_files_and_properties_keep_the_context_until_they_are_right(
    tmp_path: Path, authority: trustme.CA, caplog: pytest.LogCaptureFixture
) -> None:
    leaf = issue(authority, "a.example")
    listener = Listener(tmp_path, leaf)
    first = listener.context.current()
    listener.path.unlink()
    assert not listener.context.refresh()
    assert "No such file" in caplog.text
    listener.replace("junk")
    assert not listener.context.refresh()
    listener.values["ssl.client.auth"] = "required"
    assert not listener.context.refresh()
    assert "ssl.client.auth=required needs trusted certificates" in caplog.text or "private keys" in caplog.text
    assert listener.context.current() is first
    listener.values["ssl.client.auth"] = "none"
    listener.replace(pem_bundle(leaf))
    assert listener.context.refresh()


def test_faulty_properties_are_logged_once(tmp_path: Path, authority: trustme.CA) -> None:
    listener = Listener(tmp_path, issue(authority, "a.example"))
    listener.values["ssl.keystore.password"] = "secret-3"  # not with PEM
    assert [listener.context.refresh() for _ in range(3)] == [False] * 3
    assert listener.context.failures == 1
    del listener.values["ssl.keystore.password"]
    assert not listener.context.refresh()
    listener.values["ssl.keystore.password"] = "secret-3"
    listener.context.refresh()
    assert listener.context.failures == 2


def test_candidates_are_validated_without_use(tmp_path: Path, authority: trustme.CA) -> None:
    listener = Listener(tmp_path, issue(authority, "a.example"))
    first = listener.context.current()
    elsewhere = write_private(tmp_path / "other.pem", pem_bundle(issue(authority, "c.example")))
    candidate = Properties(listener.values | {"ssl.keystore.location": str(elsewhere)})
    with pytest.raises(TlsConfigError, match=r"lacks .* a\.example"):
        listener.context.validate(cast("ListenerProperties", candidate))
    assert listener.context.current() is first
