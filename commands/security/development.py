"""`barnabas security init`: a directory with a certificate authority, certificates, a user and configurations."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path
from typing import NamedTuple

from barnabas.clients.security.authority import Authority
from barnabas.commands.exit_codes import ExitCode
from barnabas.commands.failures import CommandFailure
from barnabas.commands.security.first_user import write_first_user
from barnabas.commands.security.properties import (
    MECHANISM,
    client_properties,
    client_tls_properties,
    server_properties,
)
from barnabas.commands.user.passwords import read_password

_AUTHORITY_FACTOR = 10
_PASSWORD_BYTES = 24
_NAME = re.compile(r"[A-Za-z0-9._@-]{1,64}")


class Wishes(NamedTuple):
    """The options of the command."""

    hosts: tuple[str, ...]
    listen: str
    port: int
    user: str
    password_file: Path | None
    days: int


def create(directory: Path, wishes: Wishes) -> None:
    """Create `directory`, which may exist if it is empty. Raises CommandFailure, OSError."""
    _ensure_name(wishes.user)
    password = _password(wishes.user, wishes.password_file)
    directory = directory.absolute()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(directory.iterdir()):
        raise CommandFailure(f"{directory} is not empty; nothing was written", ExitCode.USAGE)
    # Also for a directory that existed with a mode that lets others in.
    directory.chmod(0o700)
    host = wishes.hosts[0]
    authority = Authority("Barnabas development CA", wishes.days * _AUTHORITY_FACTOR)
    client = authority.client(wishes.user, wishes.days)
    files = {
        "ca.pem": authority.certificate,
        "ca-key.pem": authority.key,
        "broker.pem": authority.server(wishes.hosts, wishes.days),
        "client.pem": client,
        "server.properties": server_properties(directory, wishes.listen, host, wishes.port, wishes.user),
        "client.properties": client_properties(host, wishes.port, wishes.user, password, authority.certificate),
        "client-tls.properties": client_tls_properties(
            host, wishes.port + 1, wishes.user, client, authority.certificate
        ),
    }
    for name, text in files.items():
        _write(directory / name, text)
    # Its files have the modes of a broker's; it stays closed to others where it is moved.
    (directory / "data").mkdir(mode=0o700)
    write_first_user(directory / "data", wishes.user, password, MECHANISM)


def _write(path: Path, text: str) -> None:
    """Write a new file that only its owner can read, from its first byte on."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def _password(user: str, file: Path | None) -> str:
    return secrets.token_urlsafe(_PASSWORD_BYTES) if file is None else read_password(user, file)


def _ensure_name(user: str) -> None:
    # It is a SCRAM user and a certificate's common name: in both, other characters would need escapes.
    if not _NAME.fullmatch(user):
        raise CommandFailure("a user's name has 1 to 64 characters: letters, digits, and . _ @ -", ExitCode.USAGE)
