"""Users, ACLs, delegation tokens and quotas in a metadata log: kept for Kafka, not enforced by Barnabas.

Serving the directory would give every client access to data that Kafka protects, so a start is refused without
`--ignore-security`. Quotas do not restrict access: they only cause a warning.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from barnabas.broker.metadata.directories.report import BARNABAS, BARNABAS_READ_ONLY, Problem, SecurityCounts
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.image_builder import ImageBuilder
from barnabas.broker.metadata.log.log_replay import ReplayedLog
from barnabas.protocol.metadata.records import MetadataRecord


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


def security_problem(counts: SecurityCounts, metadata_log_dir: Path) -> Problem:
    """Return the problem of a directory with access rules."""
    return Problem(
        "security",
        f"{metadata_log_dir} holds {_listed(counts)} that Barnabas does not enforce: every client could read and write "
        "everything",
        "give --ignore-security to serve it anyway; they are kept for Kafka",
        frozenset({BARNABAS, BARNABAS_READ_ONLY}),
    )


def security_warnings(counts: SecurityCounts) -> list[str]:
    """Return the warnings of a start that goes on all the same."""
    sentences = []
    if counts.guards:
        sentences.append(f"security is ignored: {_listed(counts)} in the metadata log are kept and not enforced")
    if counts.quotas:
        sentences.append(f"{counts.quotas} client quotas in the metadata log are kept and not enforced")
    return sentences


def _listed(counts: SecurityCounts) -> str:
    named = (
        (counts.acls, "ACLs"),
        (counts.users, "SCRAM credentials"),
        (counts.delegation_tokens, "delegation tokens"),
    )
    return " and ".join(f"{count} {name}" for count, name in named if count)
