"""Key sources: files that change, addresses that fail, rotation, and bounds on fetches."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from barnabas.broker.security.oauth.keys import (
    MAX_KEY_SET_BYTES,
    MIN_UNKNOWN_KEY_SECONDS,
    FileKeys,
    HttpsKeys,
    Jwk,
    KeySourceError,
    open_key_source,
    parse_key_set,
)


def key_set(*ids: str) -> bytes:
    return json.dumps({"keys": [{"kid": each} for each in ids]}).encode()


class Provider:
    """An address whose answers the test sets, and a clock."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.answer: bytes | KeySourceError = key_set("a")
        self.fetches = 0

    def fetch(self, _: str) -> bytes:
        self.fetches += 1
        if isinstance(self.answer, KeySourceError):
            raise self.answer
        return self.answer

    def source(self) -> HttpsKeys:
        return HttpsKeys(
            "https://idp/keys",
            fetch=self.fetch,
            refresh_seconds=3600,
            backoff_seconds=1,
            max_backoff_seconds=4,
            now=lambda: self.now,
        )


def test_keys_are_fetched_once_and_renewed_when_due() -> None:
    provider = Provider()
    source = provider.source()
    for _ in range(3):
        assert source.key_set("a") == ({"kid": "a"},)
    assert provider.fetches == 1
    provider.now += 3600
    provider.answer = key_set("b")
    assert source.key_set("a") == ({"kid": "b"},)


def test_an_unknown_key_id_fetches_again_but_rarely() -> None:
    provider = Provider()
    source = provider.source()
    source.key_set("a")
    provider.answer = key_set("a", "b")
    for number in range(100):
        source.key_set(f"made-up-{number}")
    assert provider.fetches == 1
    provider.now += MIN_UNKNOWN_KEY_SECONDS
    assert {"kid": "b"} in source.key_set("b")
    assert provider.fetches == 2


def test_the_last_keys_stay_while_the_provider_fails_and_attempts_are_spaced() -> None:
    provider = Provider()
    source = provider.source()
    source.key_set("a")
    provider.now += 3600
    provider.answer = KeySourceError("down")
    attempts = []
    for _ in range(12):
        assert source.key_set("a") == ({"kid": "a"},)
        attempts.append(provider.fetches)
        provider.now += 1
    assert attempts == [2, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 6]  # after 1, 2, 4, 4 and 4 s
    provider.answer = key_set("b")
    provider.now += 4
    assert source.key_set("a") == ({"kid": "b"},)


def test_a_start_without_keys_refuses_until_there_are_some() -> None:
    provider = Provider()
    provider.answer = b"<html>"
    source = provider.source()
    with pytest.raises(KeySourceError, match="https://idp/keys is not JSON"):
        source.key_set("a")
    provider.answer = key_set("a")
    provider.now += 1
    assert source.key_set("a")


def test_a_slow_provider_holds_one_thread_up() -> None:
    provider = Provider()
    source = provider.source()
    source.key_set("a")
    provider.now += 3600
    entered, leave = threading.Event(), threading.Event()

    def slow(_: str) -> bytes:
        entered.set()
        assert leave.wait(30)
        return key_set("b")

    source._fetch = slow
    thread = threading.Thread(target=source.key_set, args=("a",))
    thread.start()
    assert entered.wait(30)
    assert source.key_set("a") == ({"kid": "a"},)
    leave.set()
    thread.join(30)
    assert source.key_set("a") == ({"kid": "b"},)


def test_a_file_is_read_again_when_it_changes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "keys.json"
    source = FileKeys(path)
    with pytest.raises(KeySourceError, match=r"keys\.json: No such file"):
        source.key_set("a")
    path.write_bytes(key_set("a"))
    assert source.key_set("a") == ({"kid": "a"},)
    path.write_bytes(key_set("a", "b"))
    os.utime(path, (5, 5))
    assert len(source.key_set("a")) == 2
    path.write_text("{")
    assert len(source.key_set("a")) == 2
    assert "keeping the signing keys" in caplog.text


def test_a_file_above_1_mib_is_refused_and_not_read_again_until_it_changes(
    tmp_path: Path,
) -> None:
    path = tmp_path / "keys.json"
    good = key_set("a")
    path.write_bytes(good + b" " * (MAX_KEY_SET_BYTES - len(good)))
    source = FileKeys(path)
    assert source.key_set("a") == ({"kid": "a"},)
    with path.open("ab") as file:
        file.write(b" ")
    assert source.key_set("a") == ({"kid": "a"},)
    with pytest.raises(KeySourceError, match=r"keys\.json: Larger than 1048576 bytes"):
        FileKeys(path).key_set("a")


def test_a_broken_file_is_parsed_and_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    parsed: list[bytes] = []

    def counted(text: bytes, origin: str) -> tuple[Jwk, ...]:
        parsed.append(text)
        return parse_key_set(text, origin)

    monkeypatch.setattr("barnabas.broker.security.oauth.keys.parse_key_set", counted)
    path = tmp_path / "keys.json"
    path.write_bytes(key_set("a"))
    source = FileKeys(path)
    source.key_set("a")
    path.write_text("{")
    for _ in range(3):
        assert source.key_set("a") == ({"kid": "a"},)
    path.unlink()
    for _ in range(3):
        assert source.key_set("a") == ({"kid": "a"},)
    assert len(parsed) == 2
    assert len(caplog.messages) == 2


@pytest.mark.parametrize("url", ["http://idp/keys", "keys.json", "https://", "file://host/keys", "ftp://x/y", ""])
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="neither a file: nor an https: URL"):
        open_key_source(url, refresh_ms=1, backoff_ms=1, max_backoff_ms=1, now=lambda: 0.0)
