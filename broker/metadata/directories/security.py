"""Users, ACLs, delegation tokens and quotas in a metadata log, and whether the configuration enforces them.

Serving a directory without enforcing its rules would give every client access to protected data:

    ACLs                refused without authorizer.class.name
    SCRAM credentials   refused if there is no authorizer, and no listener authenticates its clients
    delegation tokens   never refused: without delegation.token.secret.key they cannot log in, as in Kafka
    client quotas       never refused: they limit clients, and are enforced

With `--ignore-security` the directory is served without an authorizer, after a warning. A directory with a record of
these types in an unknown version is refused in any case, because its rules cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.metadata.directories.report import BARNABAS, BARNABAS_READ_ONLY, Problem, SecurityCounts
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.image_builder import ImageBuilder
from barnabas.broker.metadata.log.log_replay import ReplayedLog
from barnabas.config.listeners import PLAINTEXT, SSL, Listener
from barnabas.config.tables.security_properties import STANDARD_AUTHORIZER
from barnabas.protocol.metadata.records import MetadataRecord

if TYPE_CHECKING:
    from barnabas.config import BrokerConfig


def stored_image(replayed: ReplayedLog | None, bootstrap: Iterable[MetadataRecord] | None) -> MetadataImage:
    """Return the image of the log, with the bootstrap records of an empty log."""
    builder = ImageBuilder(MetadataImage() if replayed is None else replayed.image)
    for record in bootstrap or ():
        builder.apply(record)
    return builder.build()


def security_counts(replayed: ReplayedLog | None, bootstrap: Iterable[MetadataRecord] | None) -> SecurityCounts:
    """Count them in the log and in the bootstrap records of an empty log."""
    image = stored_image(replayed, bootstrap).security
    return SecurityCounts(
        users=len(image.scram),
        acls=len(image.acls),
        delegation_tokens=len(image.tokens),
        quotas=sum(map(len, image.quotas.values())),
    )


class EnforcedSecurity(NamedTuple):
    """The security that a configuration enforces."""

    authorizer: bool = False
    open_listeners: tuple[str, ...] = ()
    """Listeners that accept clients without authentication."""
    authenticates: bool = False
    """Whether any listener authenticates its clients."""
    logs_in_by_scram: bool = False
    logs_in_by_token: bool = False


def enforced_security(config: BrokerConfig) -> EnforcedSecurity:
    """Return what a broker with this configuration enforces."""
    is_open: dict[Listener, bool] = {}
    mechanisms: set[str] = set()
    for listener in config.listeners:
        properties = config.listener_properties(listener.name)
        protocol = config.security_protocol(listener.name)
        is_open[listener] = protocol == PLAINTEXT or (
            protocol == SSL and properties.get_str("ssl.client.auth") != "required"
        )
        if protocol.startswith("SASL_"):
            mechanisms.update(properties.get_list("sasl.enabled.mechanisms"))
    scram = any(name.startswith("SCRAM-") for name in mechanisms)
    return EnforcedSecurity(
        authorizer=bool(config.get_str("authorizer.class.name")),
        open_listeners=tuple(str(listener) for listener, opened in is_open.items() if opened),
        authenticates=not all(is_open.values()),
        logs_in_by_scram=scram,
        logs_in_by_token=scram and config.is_set("delegation.token.secret.key"),
    )


def security_problems(counts: SecurityCounts, enforced: EnforcedSecurity, metadata_log_dir: Path) -> list[Problem]:
    """Return the problems of a directory with access rules that are not enforced."""
    problems = []
    if counts.acls and not enforced.authorizer:
        problems.append(
            _problem(
                f"{metadata_log_dir} holds {counted(counts.acls, 'ACL')}, and no authorizer enforces them: every "
                "client could read and write everything",
                f"set authorizer.class.name={STANDARD_AUTHORIZER}, or give --ignore-security to serve it anyway",
            )
        )
    elif counts.users and not enforced.authorizer and not enforced.authenticates:
        problems.append(
            _problem(
                f"{metadata_log_dir} holds {counted(counts.users, 'SCRAM credential')}, and no listener authenticates "
                "its clients: every client could read and write everything",
                "configure a listener with SASL_SSL and sasl.enabled.mechanisms=SCRAM-SHA-512, or give "
                "--ignore-security to serve it anyway",
            )
        )
    return problems


def unknown_security_problem(sentence: str) -> Problem:
    """Return the problem of a record about security in a version that is not known, for a broker that only reads."""
    remedy = "set authorizer.class.name, or give --ignore-security to read everything without access rules"
    return Problem(
        "security", f"{sentence}, so that its access rules are not known", remedy, frozenset({BARNABAS_READ_ONLY})
    )


def security_warnings(counts: SecurityCounts, enforced: EnforcedSecurity, *, ignored: bool) -> list[str]:
    """Return the warnings of a start that goes on all the same."""
    sentences = []
    if ignored and counts.guards:
        sentences.append(f"security is ignored: {_listed(counts)} in the metadata log are kept and not enforced")
        return sentences
    if counts.users and enforced.authenticates and not enforced.logs_in_by_scram:
        sentences.append(
            f"{counted(counts.users, 'SCRAM credential')} in the metadata log cannot be used: no listener has a SCRAM "
            "mechanism in sasl.enabled.mechanisms"
        )
    if counts.users and enforced.authenticates and not enforced.authorizer:
        sentences += [
            f"{listener} accepts clients without authentication, although the metadata log has users"
            for listener in enforced.open_listeners
        ]
    if counts.delegation_tokens and not enforced.logs_in_by_token:
        sentences.append(
            f"{counted(counts.delegation_tokens, 'delegation token')} in the metadata log cannot log in: that needs "
            "delegation.token.secret.key and a SCRAM mechanism"
        )
    return sentences


def _problem(sentence: str, remedy: str) -> Problem:
    return Problem("security", sentence, remedy, frozenset({BARNABAS, BARNABAS_READ_ONLY}))


def _listed(counts: SecurityCounts) -> str:
    named = (
        (counts.acls, "ACL"),
        (counts.users, "SCRAM credential"),
        (counts.delegation_tokens, "delegation token"),
    )
    return " and ".join(counted(count, name) for count, name in named if count)


def counted(count: int, name: str) -> str:
    """Return a count with its noun: `1 ACL`, `2 ACLs`."""
    return f"{count} {name}" if count == 1 else f"{count} {name}s"
