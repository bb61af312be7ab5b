"""Cipher suites by their IANA names, which Kafka's `ssl.cipher.suites` contains, and by OpenSSL's.

TLS 1.3 suites have the same name in both. OpenSSL offers all of them: Python's ssl cannot restrict them before 3.15.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.transport.errors import TlsConfigError

TLS_1_2: Final = "TLSv1.2"
TLS_1_3: Final = "TLSv1.3"

TLS_1_3_SUITES: Final = frozenset(
    {"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"},
)
"""Those that OpenSSL offers by default."""

OPENSSL_NAMES: Final = {
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CCM": "ECDHE-ECDSA-AES256-CCM",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CCM": "ECDHE-ECDSA-AES128-CCM",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384": "ECDHE-ECDSA-AES256-SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384": "ECDHE-RSA-AES256-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384": "DHE-RSA-AES256-GCM-SHA384",
    "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256": "DHE-RSA-AES128-GCM-SHA256",
    "TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "DHE-RSA-CHACHA20-POLY1305",
    "TLS_DHE_RSA_WITH_AES_256_CCM": "DHE-RSA-AES256-CCM",
    "TLS_DHE_RSA_WITH_AES_128_CCM": "DHE-RSA-AES128-CCM",
    "TLS_DHE_RSA_WITH_AES_128_CBC_SHA256": "DHE-RSA-AES128-SHA256",
    "TLS_DHE_RSA_WITH_AES_256_CBC_SHA": "DHE-RSA-AES256-SHA",
    "TLS_DHE_RSA_WITH_AES_128_CBC_SHA": "DHE-RSA-AES128-SHA",
    "TLS_DHE_RSA_WITH_AES_256_CBC_SHA256": "DHE-RSA-AES256-SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_CCM": "AES256-CCM",
    "TLS_RSA_WITH_AES_128_CCM": "AES128-CCM",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA256": "AES256-SHA256",
}
"""TLS 1.2 suites: OpenSSL's name by IANA's."""


class Suites(NamedTuple):
    """The choice that `ssl.enabled.protocols` and `ssl.cipher.suites` make."""

    protocols: tuple[str, ...]
    """TLSv1.2, TLSv1.3, or both: those with at least one suite."""
    ciphers: str | None
    """OpenSSL's cipher string for TLS 1.2; None keeps OpenSSL's default."""
    unrestricted: tuple[str, ...]
    """TLS 1.3 suites that are offered although the configuration leaves them out."""


def choose(protocols: Sequence[str], cipher_suites: Sequence[str]) -> Suites:
    """Combine both properties. Raises TlsConfigError for unknown names and for a choice without any suite."""
    for protocol in protocols:
        if protocol not in (TLS_1_2, TLS_1_3):
            raise TlsConfigError(
                f"ssl.enabled.protocols: {protocol} is not served; the versions are TLSv1.2 and TLSv1.3"
            )
    enabled = tuple(version for version in (TLS_1_2, TLS_1_3) if version in protocols)
    if not cipher_suites:
        return Suites(enabled, None, ())
    unknown = [name for name in cipher_suites if name not in TLS_1_3_SUITES and name not in OPENSSL_NAMES]
    if unknown:
        raise TlsConfigError(f"ssl.cipher.suites: {', '.join(unknown)} is not a suite that OpenSSL has by IANA's name")
    older = [OPENSSL_NAMES[name] for name in cipher_suites if name in OPENSSL_NAMES]
    newer = [name for name in cipher_suites if name in TLS_1_3_SUITES]
    served = tuple(version for version in enabled if (older if version == TLS_1_2 else newer))
    if not served:
        raise TlsConfigError(f"ssl.cipher.suites has no suite for {' or '.join(enabled)}, the ssl.enabled.protocols")
    unrestricted = tuple(sorted(TLS_1_3_SUITES.difference(newer))) if TLS_1_3 in served else ()
    return Suites(served, ":".join(older) or None, unrestricted)
