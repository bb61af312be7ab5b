"""Errors of a TLS configuration."""

from __future__ import annotations


class TlsConfigError(ValueError):
    """A fault in `ssl.*` properties or in the files they name; the text is one sentence without secrets."""
