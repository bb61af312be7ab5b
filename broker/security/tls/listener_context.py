"""The TLS context of one listener, replaced when its files or properties change. Connections keep the one they have.

Files are compared by modification time, inode and size, so that a file that is renamed over another one counts as
changed. A new context that cannot be created, or whose certificate names another server, leaves the current one in use;
the fault is logged once, and counted. Source of the name checks: Kafka's SslFactory.CertificateEntries.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

from barnabas.broker.security.tls.distinguished_names import subject_of
from barnabas.transport.contexts import TlsContext, server_context
from barnabas.transport.decryption_process import InChildProcess
from barnabas.transport.errors import TlsConfigError
from barnabas.transport.settings import TlsSettings

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

    from cryptography.x509 import Certificate

    from barnabas.config.security.listener_properties import ListenerProperties
    from barnabas.transport.stores import KeyMaterial

logger = logging.getLogger(__name__)

_DECRYPTION: Final = InChildProcess()

_Stat = tuple[int, int, int] | None
_Inputs = tuple[TlsSettings, tuple[_Stat, ...]]


class ListenerContext:
    """Use `load` once, then `current` in the event loop and `refresh` in any thread."""

    def __init__(self, properties: ListenerProperties) -> None:
        self._properties = properties
        self._lock = threading.Lock()
        self._inputs: _Inputs | None = None
        self._loaded: TlsContext | None = None
        self._bad_properties: str | None = None
        self.reloads = 0
        """Replacements since the start."""
        self.failures = 0
        """Changes that could not be used."""

    @property
    def listener(self) -> str:
        """The listener's name."""
        return self._properties.listener

    def load(self) -> None:
        """Create the first context. Reads files and blocks. Raises TlsConfigError."""
        settings = TlsSettings.of_server(self._properties)
        self._inputs = (settings, _stats(settings))
        self._loaded = server_context(settings, _DECRYPTION)
        self._warn(self._loaded)

    def current(self) -> ssl.SSLContext:
        """Return the newest context."""
        assert self._loaded is not None, "not loaded"
        return self._loaded.context

    @property
    def expires_at(self) -> float | None:
        """Seconds since the epoch when the first certificate of the chain expires."""
        key = None if self._loaded is None else self._loaded.key
        if key is None:
            return None
        return min(certificate.not_valid_after_utc.timestamp() for certificate in key.chain)

    def refresh(self) -> bool:
        """Replace the context if its inputs have changed; return whether it was replaced. Blocks. Logs faults."""
        with self._lock:
            try:
                settings = TlsSettings.of_server(self._properties)
            except TlsConfigError as error:
                # Without settings there are no files to compare: a fault with another text is a new one.
                if str(error) != self._bad_properties:
                    self._bad_properties = str(error)
                    self._failed(error)
                return False
            self._bad_properties = None
            try:
                # Before the files are read: one that changes meanwhile differs at the next call.
                inputs = (settings, _stats(settings))
                if inputs == self._inputs:
                    return False
                self._inputs = inputs
                self._replace(settings)
            except TlsConfigError as error:
                self._failed(error)
                return False
            self.reloads += 1
            logger.info("replaced the TLS certificate of the listener %s", self.listener)
            return True

    def _failed(self, error: TlsConfigError) -> None:
        self.failures += 1
        logger.error("keeping the TLS certificate of the listener %s: %s", self.listener, error)

    def validate(self, properties: ListenerProperties) -> None:
        """Check that a context could be created of changed properties. Reads files, blocks. Raises TlsConfigError."""
        candidate = server_context(TlsSettings.of_server(properties), _DECRYPTION)
        self._ensure_same_server(candidate.key, properties)

    def _replace(self, settings: TlsSettings) -> None:
        candidate = server_context(settings, _DECRYPTION)
        self._ensure_same_server(candidate.key, self._properties)
        self._loaded = candidate
        self._warn(candidate)

    def _ensure_same_server(self, key: KeyMaterial | None, properties: ListenerProperties) -> None:
        """Refuse a certificate of another server, unless it is allowed: it may be a file put in the wrong place."""
        if self._loaded is None or self._loaded.key is None or key is None:
            return
        old, new = self._loaded.key.chain[0], key.chain[0]
        if not properties.get_bool("ssl.allow.dn.changes"):
            before, after = _subject(old), _subject(new)
            if before.lower() != after.lower():
                raise TlsConfigError(
                    f"the new certificate's name is {after}, not {before}; ssl.allow.dn.changes=true would allow it"
                )
        if not properties.get_bool("ssl.allow.san.changes"):
            missing = _alternative_names(old) - _alternative_names(new)
            if missing:
                raise TlsConfigError(
                    f"the new certificate lacks the subject alternative names {', '.join(sorted(missing))}; "
                    "ssl.allow.san.changes=true would allow it"
                )

    def _warn(self, loaded: TlsContext) -> None:
        if loaded.unrestricted_suites:
            logger.warning(
                "the listener %s also offers %s, which ssl.cipher.suites leaves out: Python cannot restrict the suites "
                "of TLS 1.3",
                self.listener,
                ", ".join(loaded.unrestricted_suites),
            )


def _stats(settings: TlsSettings) -> tuple[_Stat, ...]:
    return tuple(_stat(path) for path in settings.files)


def _stat(path: Path) -> _Stat:
    try:
        found = path.stat()
    except OSError:
        return None  # reading it says why
    return found.st_mtime_ns, found.st_ino, found.st_size


def _subject(certificate: Certificate) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return subject_of(certificate.public_bytes(Encoding.DER))


def _alternative_names(certificate: Certificate) -> set[str]:
    from cryptography.x509 import ExtensionNotFound, SubjectAlternativeName

    try:
        extension = certificate.extensions.get_extension_for_class(SubjectAlternativeName)
    except ExtensionNotFound:
        return set()
    return {str(name.value) for name in extension.value}
