"""Cost of the key derivations in encrypted keys and PKCS12 files, read before OpenSSL derives.

A derivation holds the interpreter's lock, and a file may require 2^31 - 1 iterations: it would stop the broker for an
hour. The parameters are outside of the encryption, so a walk over the ASN.1 elements (DER) finds them:

    AlgorithmIdentifier  SEQUENCE { OBJECT IDENTIFIER, SEQUENCE { OCTET STRING salt, INTEGER iterations, ... } }
    the same of scrypt   SEQUENCE { OBJECT IDENTIFIER, SEQUENCE { OCTET STRING salt, INTEGER N, INTEGER r, INTEGER p } }
    PKCS12's MacData     SEQUENCE { SEQUENCE, OCTET STRING salt, INTEGER iterations }

Not found: parameters in the encrypted parts of a PKCS12 file, and those in BER (indefinite lengths, strings in pieces),
which OpenSSL also reads. A broker is safe from those because it decrypts in another process (`decryption_process`).
Sources: RFC 8018 (PBES1, PBES2, PBKDF2), RFC 7914 (scrypt), RFC 7292 (PKCS12).
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Iterator
from itertools import islice, takewhile
from typing import Final

ITERATIONS_MAX: Final = 2_000_000
"""Iterations of all derivations of one file: about 10 s with SHA-256. Tools write 2,048 to 1,000,000."""

SCRYPT_MAX: Final = 1 << 20
"""N * r * p of scrypt: 128 MiB of memory and about a second. Tools write up to 2^17."""

_ELEMENTS_MAX: Final = 500_000
"""ASN.1 elements in one file: 1,000 certificates have about 200,000. The walk takes about a second."""

_DEPTH_MAX: Final = 30
"""Levels of elements. A key's parameters in a PKCS12 file are at most at level 16."""

_INTEGER: Final = 0x02
_OCTETS: Final = 0x04
_OID: Final = 0x06
_SEQUENCE: Final = 0x30
_CONSTRUCTED: Final = 0x20

_SCRYPT: Final = bytes.fromhex("2b06010401da47040b")
"""1.3.6.1.4.1.11591.4.11"""

_NO_BASE64: Final = re.compile(rb"[^A-Za-z0-9+/=]")


class CostlyKeyError(ValueError):
    """Derivations above the limits; `str(error)` is a clause about the key or file."""


def check_encrypted_key(pem: bytes) -> None:
    """Check one PEM block of an ENCRYPTED PRIVATE KEY. Raises CostlyKeyError, or ValueError: it is damaged."""
    body = pem.partition(b"-----BEGIN ENCRYPTED PRIVATE KEY-----")[2].partition(b"-----END")[0]
    try:
        der = base64.b64decode(_NO_BASE64.sub(b"", body), validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error
    if not _check(der, into_strings=False):
        raise ValueError("no parameters of a key derivation")


def check_pkcs12(data: bytes) -> None:
    """Check the derivations of a PKCS12 file that are visible without its password. Raises CostlyKeyError."""
    _check(data, into_strings=True)


def _check(der: bytes, *, into_strings: bool) -> int:
    """Return the number of derivations. Raises CostlyKeyError."""
    found = iterations = scrypt = elements = 0
    waiting = [(der, 0)]
    while waiting:
        data, depth = waiting.pop()
        children = list(islice(_elements(data), _ELEMENTS_MAX + 1))
        elements += len(children)
        if elements > _ELEMENTS_MAX:
            raise CostlyKeyError(f"has more than {_ELEMENTS_MAX} ASN.1 elements")
        numbers = _parameters(children)
        if numbers:
            found += 1
            if children[0] == (_OID, _SCRYPT):
                scrypt += math.prod(numbers[:3])
            else:
                iterations += numbers[0]
        if depth < _DEPTH_MAX:
            waiting += [
                (content, depth + 1)
                for tag, content in children
                if tag & _CONSTRUCTED or (into_strings and tag == _OCTETS and content[:1] == b"\x30")
            ]
    if iterations > ITERATIONS_MAX:
        raise CostlyKeyError(f"requires {iterations} iterations of key derivation; the limit is {ITERATIONS_MAX}")
    if scrypt > SCRYPT_MAX:
        raise CostlyKeyError(f"requires scrypt with N*r*p = {scrypt}; the limit is {SCRYPT_MAX}")
    return found


def _parameters(children: list[tuple[int, bytes]]) -> list[int]:
    """Return the numbers after the salt if these are the children of an AlgorithmIdentifier or a MacData."""
    tags = [tag for tag, _ in children[:4]]
    if tags == [_SEQUENCE, _OCTETS, _INTEGER]:
        return [_number(children[2][1])]
    if tags != [_OID, _SEQUENCE]:
        return []
    inner = list(islice(_elements(children[1][1]), 4))
    if not inner or inner[0][0] != _OCTETS:
        return []
    return [_number(content) for _, content in takewhile(lambda element: element[0] == _INTEGER, inner[1:])]


def _number(content: bytes) -> int:
    """Return an INTEGER; those of more than 8 bytes count as 2^64."""
    return int.from_bytes(content, "big") if len(content) <= 8 else 1 << 64


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the elements' first tag bytes and contents, up to bytes that are not DER."""
    position = 0
    try:
        while position < len(data):
            tag = data[position]
            position += 1
            if tag & 0x1F == 0x1F:  # a tag of several bytes
                while data[position] & 0x80:
                    position += 1
                position += 1
            length = data[position]
            position += 1
            if length & 0x80:
                size = length & 0x7F
                if not 1 <= size <= 8:
                    return
                length = int.from_bytes(data[position : position + size], "big")
                position += size
            if length > len(data) - position:
                return
            yield tag, data[position : position + length]
            position += length
    except IndexError:
        return
