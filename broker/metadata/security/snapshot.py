"""Records of a snapshot that rebuild a SecurityImage.

Kafka writes client quotas before the producer ids, and ACLs, SCRAM credentials and tokens after them (MetadataImage.
write).
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.broker.metadata.security.image import DelegationToken, SecurityImage
from barnabas.protocol.metadata.security_records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    EntityData,
    SecurityRecord,
    UserScramCredentialRecord,
)


def quota_records(image: SecurityImage) -> Iterator[ClientQuotaRecord]:
    """Yield the records of the client quotas."""
    for entity, values in image.quotas.items():
        rows = tuple([EntityData(*each) for each in entity])
        for key, value in values.items():
            yield ClientQuotaRecord(rows, key, value)


def access_records(image: SecurityImage) -> Iterator[SecurityRecord]:
    """Yield the records of ACLs, SCRAM credentials and tokens."""
    for acl_id, acl in image.acls.items():
        yield AccessControlEntryRecord(acl_id, *acl)
    for (name, mechanism), credential in image.scram.items():
        yield UserScramCredentialRecord(name, mechanism, *credential)
    for token in image.tokens.values():
        yield token_record(token)


def token_record(token: DelegationToken) -> DelegationTokenRecord:
    """Return the record of a token."""
    return DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=token.renewers,
        issue_timestamp_ms=token.issued_ms,
        max_timestamp_ms=token.max_ms,
        expiration_timestamp_ms=token.expires_ms,
        token_id=token.token_id,
    )
