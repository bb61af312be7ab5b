"""Signing keys of an identity provider: a JWK set (RFC 7517) in a file or at an HTTPS address.

Fetched again after `sasl.oauthbearer.jwks.endpoint.refresh.ms`, and earlier for a key id that is not in the set, as
after a rotation. While the provider cannot be reached, the last keys stay valid; attempts are spaced by
`sasl.oauthbearer.jwks.endpoint.retry.backoff.ms`, doubled up to `.max.ms`. Unlike Kafka, a broker starts without keys,
and refuses tokens until it has some. A file is read again when it changes.

Everything here blocks: call it on a thread. Methods may be called by several threads.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import unquote, urlsplit

from barnabas.broker.security.oauth.https_fetch import FetchError, fetch_https
from barnabas.config.security.bounded_file import read_regular_file

logger = logging.getLogger(__name__)

MAX_KEY_SET_BYTES: Final = 1024 * 1024
FETCH_TIMEOUT_SECONDS: Final = 10.0
"""Of a whole fetch, from the connection to the last byte."""

MIN_UNKNOWN_KEY_SECONDS: Final = 10.0
"""Minimum time between two fetches for unknown key ids, which clients can make up."""

Jwk = Mapping[str, Any]


class KeySourceError(Exception):
    """The key set cannot be read; `str(error)` is one sentence."""


class KeySource(Protocol):
    """Where the keys come from."""

    def key_set(self, wanted: str | None) -> tuple[Jwk, ...]:
        """Return the current keys; read them again if no key has the id `wanted`. Raises KeySourceError: none yet."""
        ...


def open_key_source(
    url: str, *, refresh_ms: int, backoff_ms: int, max_backoff_ms: int, now: Callable[[], float]
) -> KeySource:
    """Return the source at a `file:` or `https:` URL. `now` returns seconds. Raises ValueError for other URLs."""
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.netloc in ("", "localhost") and parts.path:
        return FileKeys(Path(unquote(parts.path)))
    if parts.scheme == "https" and parts.netloc:
        return HttpsKeys(
            url,
            fetch=_fetch,
            refresh_seconds=refresh_ms / 1000,
            backoff_seconds=backoff_ms / 1000,
            max_backoff_seconds=max_backoff_ms / 1000,
            now=now,
        )
    raise ValueError(f"{url} is neither a file: nor an https: URL")


def parse_key_set(text: bytes, origin: str) -> tuple[Jwk, ...]:
    """Parse a JWK set. Raises KeySourceError."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise KeySourceError(f"{origin} is not JSON") from None
    keys = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(keys, list) or not all(isinstance(key, dict) for key in keys):
        raise KeySourceError(f"{origin} is not a JWK set: it has no list of keys")
    return tuple(keys)


def _fetch(url: str) -> bytes:
    """Return the body at an HTTPS URL. Raises KeySourceError."""
    try:
        return fetch_https(url, max_bytes=MAX_KEY_SET_BYTES, timeout_seconds=FETCH_TIMEOUT_SECONDS)
    except FetchError as error:
        raise KeySourceError(str(error)) from error


_Version = tuple[int, int, int]
"""Modification time, size and inode of a file."""


class FileKeys:
    """The keys in a file, read again when it changes. A fault is logged once: clients cause a call at each login."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._version: _Version | None = None
        """Of the file that was read last, also if it was refused."""
        self._keys: tuple[Jwk, ...] | None = None
        self._fault = ""

    def key_set(self, wanted: str | None) -> tuple[Jwk, ...]:
        """Return the keys. Raises KeySourceError: the file cannot be read and never was."""
        with self._lock:
            try:
                found = self._path.stat()
                version = (found.st_mtime_ns, found.st_size, found.st_ino)
                if version != self._version:
                    text = read_regular_file(self._path, MAX_KEY_SET_BYTES)
                    self._version = version
                    self._keys, self._fault = parse_key_set(text, str(self._path)), ""
            except OSError as error:
                self._failed(f"{self._path}: {error.strerror}")
            except KeySourceError as error:
                self._failed(str(error))
            if self._keys is None:
                raise KeySourceError(self._fault)
            return self._keys

    def _failed(self, sentence: str) -> None:
        if sentence != self._fault and self._keys is not None:
            logger.warning("keeping the signing keys of OAUTHBEARER: %s", sentence)
        self._fault = sentence


class HttpsKeys:
    """The keys at an address, cached."""

    def __init__(
        self,
        url: str,
        *,
        fetch: Callable[[str], bytes],
        refresh_seconds: float,
        backoff_seconds: float,
        max_backoff_seconds: float,
        now: Callable[[], float],
    ) -> None:
        self._url = url
        self._fetch = fetch
        self._refresh_seconds = refresh_seconds
        self._min_backoff_seconds = backoff_seconds
        self._max_backoff_seconds = max_backoff_seconds
        self._now = now
        self._lock = threading.Lock()
        self._keys: tuple[Jwk, ...] | None = None
        self._fetched_at = 0.0
        self._backoff_seconds = backoff_seconds
        self._not_before = float("-inf")
        self._fault = "they were not fetched yet"

    def key_set(self, wanted: str | None) -> tuple[Jwk, ...]:
        """Return the keys. Raises KeySourceError: none was ever fetched."""
        # While one thread fetches, the others go on with the keys of before: a slow provider holds one thread up.
        if self._lock.acquire(blocking=False):
            try:
                if self._is_due(wanted):
                    self._refresh()
            finally:
                self._lock.release()
        keys = self._keys
        if keys is None:
            raise KeySourceError(self._fault)
        return keys

    def _is_due(self, wanted: str | None) -> bool:
        now = self._now()
        if now < self._not_before:
            return False
        if self._keys is None or now - self._fetched_at >= self._refresh_seconds:
            return True
        is_unknown = wanted is not None and all(key.get("kid") != wanted for key in self._keys)
        return is_unknown and now - self._fetched_at >= MIN_UNKNOWN_KEY_SECONDS

    def _refresh(self) -> None:
        try:
            self._keys = parse_key_set(self._fetch(self._url), self._url)
        except KeySourceError as error:
            self._fault = str(error)
            self._not_before = self._now() + self._backoff_seconds
            self._backoff_seconds = min(max(self._backoff_seconds * 2, 0.001), self._max_backoff_seconds)
            logger.warning("the signing keys of OAUTHBEARER were not renewed: %s", error)
            return
        self._fetched_at = self._now()
        self._backoff_seconds = self._min_backoff_seconds
