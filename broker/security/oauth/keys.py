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
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import unquote, urlsplit

logger = logging.getLogger(__name__)

MAX_KEY_SET_BYTES: Final = 1024 * 1024
FETCH_TIMEOUT_SECONDS: Final = 10.0

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
            fetch=fetch_https,
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


def fetch_https(url: str) -> bytes:
    """Return the body at an HTTPS URL. Raises KeySourceError."""
    try:
        with _OPENER.open(url, timeout=FETCH_TIMEOUT_SECONDS) as response:
            body: bytes = response.read(MAX_KEY_SET_BYTES + 1)
    except urllib.error.HTTPError as error:
        with error:
            raise KeySourceError(f"{url} answered {error.code}") from None
    except (OSError, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise KeySourceError(f"{url} cannot be fetched: {reason}") from error
    if len(body) > MAX_KEY_SET_BYTES:
        raise KeySourceError(f"{url} has more than {MAX_KEY_SET_BYTES} bytes")
    return body


class _HttpsOnly(urllib.request.HTTPRedirectHandler):
    """Follows redirections to HTTPS addresses only: keys from elsewhere could be anybody's."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if urlsplit(newurl).scheme != "https":
            raise urllib.error.URLError(f"it redirects to {newurl}, which is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


_OPENER: Final = urllib.request.build_opener(_HttpsOnly)


class FileKeys:
    """The keys in a file, read again when it changes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._read: tuple[tuple[int, int, int], tuple[Jwk, ...]] | None = None

    def key_set(self, wanted: str | None) -> tuple[Jwk, ...]:
        """Return the keys. Raises KeySourceError: the file cannot be read and never was."""
        with self._lock:
            try:
                found = self._path.stat()
                version = (found.st_mtime_ns, found.st_size, found.st_ino)
                if self._read is None or self._read[0] != version:
                    keys = parse_key_set(self._path.read_bytes(), str(self._path))
                    self._read = (version, keys)
            except (OSError, KeySourceError) as error:
                sentence = str(error) if isinstance(error, KeySourceError) else f"{self._path}: {error.strerror}"
                if self._read is None:
                    raise KeySourceError(sentence) from error
                logger.warning("keeping the signing keys of OAUTHBEARER: %s", sentence)
            return self._read[1]


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
