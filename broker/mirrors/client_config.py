"""How a mirror reaches its source: the definition's addresses, and the file of client properties that it names."""

from __future__ import annotations

import logging
import os
import stat
from typing import TYPE_CHECKING, Final

from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import ClientConfigError
from barnabas.clients.security.settings import PLAINTEXT_SETTINGS, SecuritySettings
from barnabas.config.security.security_checks import is_readable_by_others

if TYPE_CHECKING:
    from barnabas.protocol.mirrors.definition import MirrorDefinition

logger = logging.getLogger(__name__)

_FILE_BYTES_MAX: Final = 1 << 20
_FIRST_BACKOFF_MS: Final = 100
_LONGEST_BACKOFF_MS: Final = 10_000
"""A source may be away for hours."""


def client_config(definition: MirrorDefinition) -> ClientConfig:
    """Return the configuration of the client. Reads a file. Raises ClientConfigError, OSError."""
    security = PLAINTEXT_SETTINGS
    path = definition.command_config
    if path is not None:
        _ensure_small_file(path)
        security = SecuritySettings.from_file(path)
        if is_readable_by_others(path):
            logger.warning(
                "mirror %s: every user of this machine can read its command config; run chmod o-r %s",
                definition.name,
                path,
            )
    return ClientConfig(
        bootstrap=",".join(definition.bootstrap),
        client_id=f"barnabas-mirror-{definition.name}",
        reconnect_backoff_ms=_FIRST_BACKOFF_MS,
        reconnect_backoff_max_ms=_LONGEST_BACKOFF_MS,
        security=security,
    )


def _ensure_small_file(path: str) -> None:
    """Refuse what a client may name and a thread would read forever: pipes, devices, large files."""
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        raise ClientConfigError(f"{path} is not a regular file")
    if found.st_size > _FILE_BYTES_MAX:
        raise ClientConfigError(
            f"{path} has {found.st_size} bytes, more than the {_FILE_BYTES_MAX} of a command config"
        )
