"""Distinguished names as Java's X500Principal.getName() prints them, which principals and ACLs contain.

RFC 2253: the most specific part first, so in the reverse order of the certificate; attributes of one part joined by
`+`. Nine attribute types have keywords. Any other type is its number, and its value `#` with the hexadecimal DER; so is
a value that Java does not count as text. Java decodes every text as UTF-8, whatever its ASN.1 type. Verified against
Java 17 (tests/broker/security/tls). Source: Java's RDN and AVA in sun.security.x509.

The subject is read from the certificate's DER, because libraries decode the values and lose their ASN.1 types.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}

_ESCAPED: Final = ',=+<>#;"\\'
"""More than RFC 2253 demands: Java also escapes `=`, and every `#`."""

_TEXT_TAGS: Final = frozenset({12, 19, 20, 22, 27, 30})
"""UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString."""

_EXPLICIT_VERSION: Final = 0xA0
_SUBJECT_INDEX: Final = 4
"""In a TBSCertificate after the version: serial number, signature algorithm, issuer, validity, subject."""


def subject_of(certificate_der: bytes) -> str:
    """Return a certificate's subject as Java prints it. Raises ValueError for bytes that are not a certificate."""
    try:
        certificate = next(_elements(certificate_der))
        to_be_signed = next(_elements(certificate[1]))
        fields = [field for field in _elements(to_be_signed[1]) if field[0] != _EXPLICIT_VERSION]
        return java_name(fields[_SUBJECT_INDEX][1])
    except (IndexError, StopIteration) as error:
        raise ValueError("not an X.509 certificate") from error


def java_name(rdn_sequence: bytes) -> str:
    """Return a name as `X500Principal.getName()` does; `rdn_sequence` is the content of its outer SEQUENCE."""
    parts = ["+".join(_attribute(each) for _, each, _ in _elements(rdn)) for _, rdn, _ in _elements(rdn_sequence)]
    return ",".join(reversed(parts))


def _attribute(content: bytes) -> str:
    (_, identifier, _), (tag, value, whole) = _elements(content)
    number = _object_identifier(identifier)
    keyword = KEYWORDS.get(number)
    if keyword is None or tag not in _TEXT_TAGS:
        return f"{keyword or number}=#{whole.hex()}"
    return f"{keyword}={_escape(value.decode('utf-8', 'replace'))}"


def _escape(text: str) -> str:
    escaped = "".join("\\" + each if each in _ESCAPED else "\\00" if each == "\0" else each for each in text)
    inner = escaped.strip(" \r")
    if inner == escaped:
        return escaped
    lead, _, trail = escaped.partition(inner) if inner else (escaped, "", "")
    return "".join("\\" + each for each in lead) + inner + "".join("\\" + each for each in trail)


def _elements(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield tag, content, and the whole element with its header. Raises IndexError for truncated data."""
    position = 0
    while position < len(data):
        start, tag, length = position, data[position], data[position + 1]
        position += 2
        if length & 0x80:
            size = length & 0x7F
            length = int.from_bytes(data[position : position + size], "big")
            position += size
        end = position + length
        if end > len(data):
            raise IndexError("truncated DER")
        yield tag, data[position:end], data[start:end]
        position = end


def _object_identifier(content: bytes) -> str:
    arcs: list[int] = []
    value = 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            arcs.append(value)
            value = 0
    first = min(arcs[0] // 40, 2)
    return ".".join(str(arc) for arc in (first, arcs[0] - 40 * first, *arcs[1:]))
