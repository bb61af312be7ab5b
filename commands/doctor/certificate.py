"""Certificates of brokers in words."""

from __future__ import annotations

from cryptography import x509

_SHOWN_NAMES = 5


def describe(der: bytes) -> str:
    """Return whose certificate it is, for which hosts, by whom it was issued, and until when it is valid."""
    try:
        certificate = x509.load_der_x509_certificate(der)
        hosts = _hosts(certificate)
        subject, issuer = certificate.subject.rfc4514_string(), certificate.issuer.rfc4514_string()
    except ValueError as error:
        return f"that cannot be read ({error})"
    shown = ", ".join(hosts[:_SHOWN_NAMES]) + (", ..." if len(hosts) > _SHOWN_NAMES else "")
    return (
        f"of {subject or 'no name'} for {shown or 'no host name'}, issued by {issuer or 'no name'}, valid until "
        f"{certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
    )


def _hosts(certificate: x509.Certificate) -> list[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    addresses = map(str, names.get_values_for_type(x509.IPAddress))
    return [*names.get_values_for_type(x509.DNSName), *addresses]
