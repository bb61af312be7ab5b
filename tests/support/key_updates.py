"""KeyUpdate messages of a TLS 1.3 client (RFC 8446), which Python's own TLS cannot send.

The records are made from the connection's traffic secret, which OpenSSL writes to a key log.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

_KEY_UPDATE = b"\x18\0\0\1"
_HANDSHAKE = b"\x16"
_DATA = b"\x17"
_TAG_BYTES = 16


def log_keys(context: ssl.SSLContext, directory: Path) -> Path:
    """Make a client's context write its secrets to a file, for `key_updates`."""
    path = directory / "keys.log"
    context.keylog_filename = str(path)
    return path


def key_updates(keys: Path, count: int, then: bytes = b"", *, answered: bool = False) -> bytes:
    """Return the records of `count` updates, and one with the data `then`, for the last connection of `keys`.

    It must have sent nothing since its handshake. `answered`: the peer is asked to update its key, too.
    """
    secrets = [line.split()[2] for line in keys.read_text().splitlines() if line.startswith("CLIENT_TRAFFIC_SECRET_0")]
    secret = bytes.fromhex(secrets[-1])
    records = bytearray()
    for _ in range(count):
        records += _record(secret, _KEY_UPDATE + bytes([answered]) + _HANDSHAKE)
        secret = _expand(secret, b"traffic upd", len(secret))
    if then:
        records += _record(secret, then + _DATA)
    return bytes(records)


def _record(secret: bytes, content: bytes) -> bytes:
    """Return the first record of a key. Its sequence number is 0, so its nonce is the IV."""
    header = b"\x17\3\3" + (len(content) + _TAG_BYTES).to_bytes(2, "big")
    key_bytes = 32 if len(secret) == 48 else 16
    return header + AESGCM(_expand(secret, b"key", key_bytes)).encrypt(_expand(secret, b"iv", 12), content, header)


def _expand(secret: bytes, label: bytes, length: int) -> bytes:
    full = b"tls13 " + label
    info = length.to_bytes(2, "big") + bytes([len(full)]) + full + b"\0"
    # A suite with SHA-384 has secrets of 384 bits.
    algorithm = hashes.SHA384() if len(secret) == 48 else hashes.SHA256()
    return HKDFExpand(algorithm, length, info).derive(secret)
