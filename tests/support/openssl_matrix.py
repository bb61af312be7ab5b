"""What `openssl s_client` gets from listeners with TLS, for Barnabas and for Apache Kafka.

Listeners of one broker differ in their properties. The only super user is User:ANONYMOUS, so the answer to DescribeAcls
shows whether a client's certificate was used.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trustme

from tests.support.authorization.table import STANDARD_AUTHORIZER
from tests.support.openssl_client import Outcome, connected, outcome_of
from tests.support.tls import authority_pem, pem_bundle, write_private

_AES_128_1_2: Final = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
_AES_128_1_3: Final = "TLS_AES_128_GCM_SHA256"

LISTENERS: Final[Mapping[str, Mapping[str, str]]] = {
    "BOTH": {},
    "OLDER": {"ssl.enabled.protocols": "TLSv1.2"},
    "NEWER": {"ssl.enabled.protocols": "TLSv1.3"},
    "SUITE": {"ssl.cipher.suites": _AES_128_1_2},
    "SUITES": {"ssl.cipher.suites": f"{_AES_128_1_2},{_AES_128_1_3}"},
    "REQUIRED": {"ssl.client.auth": "required"},
    "REQUESTED": {"ssl.client.auth": "requested"},
}

_AES_256: Final = "TLSv1.2 ECDHE-ECDSA-AES256-GCM-SHA384"
_AES_128: Final = "TLSv1.2 ECDHE-ECDSA-AES128-GCM-SHA256"
_NEWEST: Final = "TLSv1.3 TLS_AES_256_GCM_SHA384"
_WEAK: Final = ("-cipher", "ALL:@SECLEVEL=0")


@dataclass(frozen=True)
class Case:
    """Options of s_client at a listener, and the expected outcome in the form of `essence`."""

    name: str
    listener: str
    options: tuple[str, ...]
    expected: str
    kafka: str = ""
    """Apache Kafka's outcome where it differs."""
    certificate: str = ""
    """The file of the client's certificate, without its suffix."""


CASES: Final = (
    Case("the newest version and suite", "BOTH", (), f"{_NEWEST} anonymous"),
    Case("TLS 1.2", "BOTH", ("-tls1_2",), f"{_AES_256} anonymous"),
    Case("TLS 1.1", "BOTH", ("-tls1_1", *_WEAK), "alert 70"),
    Case("TLS 1.0", "BOTH", ("-tls1", *_WEAK), "alert 70"),
    Case("only TLS 1.2, which the client has", "OLDER", (), f"{_AES_256} anonymous"),
    Case("only TLS 1.2, the client 1.3", "OLDER", ("-tls1_3",), "alert 70"),
    Case("only TLS 1.3, which the client has", "NEWER", (), f"{_NEWEST} anonymous"),
    Case("only TLS 1.3, the client 1.2", "NEWER", ("-tls1_2",), "alert 70"),
    Case("an unnecessary fallback", "BOTH", ("-tls1_2", "-fallback_scsv"), "alert 86", kafka="closed"),
    Case(
        "the broker's order of TLS 1.2 suites",
        "BOTH",
        ("-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384"),
        f"{_AES_256} anonymous",
    ),
    Case(
        "a CBC suite with SHA-1",
        "BOTH",
        ("-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA"),
        "alert 40",
        kafka="TLSv1.0 ECDHE-ECDSA-AES128-SHA anonymous",
    ),
    Case("no authentication of the broker", "BOTH", ("-tls1_2", "-cipher", "aNULL:@SECLEVEL=0"), "alert 40"),
    Case("no encryption", "BOTH", ("-tls1_2", "-cipher", "eNULL:@SECLEVEL=0"), "alert 40"),
    Case("one TLS 1.3 suite", "BOTH", ("-ciphersuites", _AES_128_1_3), f"TLSv1.3 {_AES_128_1_3} anonymous"),
    Case("a configured suite of TLS 1.2", "SUITE", ("-tls1_2",), f"{_AES_128} anonymous"),
    Case(
        "a suite that is not configured", "SUITE", ("-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-GCM-SHA384"), "alert 40"
    ),
    Case("TLS 1.3 without a configured suite", "SUITE", ("-tls1_3",), "alert 70"),
    Case(
        "TLS 1.3 with configured suites", "SUITES", ("-ciphersuites", _AES_128_1_3), f"TLSv1.3 {_AES_128_1_3} anonymous"
    ),
    Case(
        "TLS 1.3 suites are not restricted",
        "SUITES",
        ("-tls1_3",),
        f"{_NEWEST} anonymous",
        kafka=f"TLSv1.3 {_AES_128_1_3} anonymous",
    ),
    Case("a required certificate", "REQUIRED", (), f"{_NEWEST} alice", certificate="alice"),
    Case("a required certificate, TLS 1.2", "REQUIRED", ("-tls1_2",), f"{_AES_256} alice", certificate="alice"),
    Case("no certificate", "REQUIRED", (), "alert 116", kafka="alert 42"),
    Case("no certificate, TLS 1.2", "REQUIRED", ("-tls1_2",), "alert 40", kafka="alert 42"),
    Case("another authority's certificate", "REQUIRED", (), "alert 48", certificate="stranger", kafka="alert 46"),
    Case(
        "another authority's certificate, TLS 1.2",
        "REQUIRED",
        ("-tls1_2",),
        "alert 48",
        certificate="stranger",
        kafka="alert 46",
    ),
    Case("an expired certificate", "REQUIRED", (), "alert 45", certificate="expired", kafka="alert 46"),
    Case("a requested certificate", "REQUESTED", (), f"{_NEWEST} alice", certificate="alice"),
    Case("no requested certificate", "REQUESTED", (), f"{_NEWEST} anonymous"),
    Case("a wrong requested certificate", "REQUESTED", (), "alert 48", certificate="stranger", kafka="alert 46"),
    Case("a certificate that is not requested", "BOTH", (), f"{_NEWEST} anonymous", certificate="stranger"),
    Case("the broker's server name", "BOTH", ("-servername", "localhost"), f"{_NEWEST} anonymous"),
    Case("another server name", "BOTH", ("-servername", "other.example"), f"{_NEWEST} anonymous"),
    Case("another server name, TLS 1.2", "BOTH", ("-tls1_2", "-servername", "other.example"), f"{_AES_256} anonymous"),
    Case("no server name", "BOTH", ("-noservername",), f"{_NEWEST} anonymous"),
)

RESUMPTIONS: Final = {
    "TLS 1.2, session id": ("-tls1_2", "-no_ticket"),
    "TLS 1.2, ticket": ("-tls1_2",),
    "TLS 1.3": ("-tls1_3",),
}


class Files:
    """The broker's and the clients' certificates as files of a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        authority, other = trustme.CA(), trustme.CA()
        past = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
        self.broker = write_private(
            directory / "broker.pem", pem_bundle(authority.issue_cert("127.0.0.1", "localhost"))
        )
        self.authority = write_private(directory / "ca.pem", authority_pem(authority))
        issued = {
            "alice": authority.issue_cert("alice@example.org", common_name="alice"),
            "stranger": other.issue_cert("alice@example.org", common_name="alice"),
            "expired": authority.issue_cert("alice@example.org", common_name="alice", not_after=past),
        }
        for name, certificate in issued.items():
            write_private(directory / f"{name}.pem", pem_bundle(certificate))

    def options(self, certificate: str) -> tuple[str | Path, ...]:
        """Return the options of a client's certificate."""
        path = self.directory / f"{certificate}.pem"
        return ("-cert", path, "-cert_chain", path, "-key", path) if certificate else ()

    def settings(self) -> dict[str, str]:
        """Return the brokers' properties, apart from the listeners."""
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.broker),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority),
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": "User:ANONYMOUS",
            "connection.failed.authentication.delay.ms": "0",
            **{
                f"listener.name.{listener.lower()}.{name}": value
                for listener, properties in LISTENERS.items()
                for name, value in properties.items()
            },
        }


def essence(outcome: Outcome) -> str:
    """Return the suite, its oldest version of TLS and the user of a served client, or the alert of a refused one."""
    if not outcome.is_served:
        return "closed" if outcome.alert is None else f"alert {outcome.alert}"
    user = {0: "anonymous", 31: "alice"}[outcome.error_code or 0]
    return f"{outcome.version} {outcome.cipher} {user}"


def play(case: Case, files: Files, ports: Mapping[str, int]) -> str:
    """Return the essence of a case at a broker."""
    options = (*case.options, *files.options(case.certificate))
    return essence(outcome_of(ports[case.listener], files.authority, *options))


def resume(options: tuple[str, ...], files: Files, ports: Mapping[str, int], directory: Path) -> list[tuple[bool, str]]:
    """Connect with a session: new, again, and at a listener that does not request certificates.

    Returns for each connection whether the session was resumed, and the essence.
    """
    session = directory / "session"
    alice = files.options("alice")
    found = []
    for listener, more in (
        ("REQUIRED", ("-sess_out", session)),
        ("REQUIRED", ("-sess_in", session)),
        ("BOTH", ("-sess_in", session)),
    ):
        outcome = outcome_of(ports[listener], files.authority, *options, *alice, *more)
        found.append((outcome.is_resumed, essence(outcome)))
    return found


def renegotiate(files: Files, ports: Mapping[str, int]) -> list[bool]:
    """Renegotiate an open connection; return whether it was served before and after that, and whether others are."""
    with connected(ports["BOTH"], files.authority, "-tls1_2") as connection:
        served = [connection.request()]
        connection.command("R", b"RENEGOTIATING")
        served.append(connection.request())
    return [*served, outcome_of(ports["BOTH"], files.authority).is_served]


def update_keys(files: Files, ports: Mapping[str, int]) -> list[bool]:
    """Update the client's key, then both keys, of an open TLS 1.3 connection; return what is served in between."""
    with connected(ports["BOTH"], files.authority, "-tls1_3") as connection:
        served = [connection.request()]
        for letter in "kK":
            connection.command(letter, b"KEYUPDATE")
            served.append(connection.request())
    return served
