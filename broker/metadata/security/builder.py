"""Application of security records to a SecurityImage: a map is copied at its first change, the others are shared.

As in Kafka, deleting an unknown ACL or credential stops the replay, and deleting an unknown token or quota does not.
An ACL's id or a user's mechanism that is set again replaces the earlier value.
Source: Kafka's AclControlManager, ScramControlManager, ClientQuotasDelta and DelegationTokenDelta.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.broker.metadata.errors import ReplayError
from barnabas.broker.metadata.security.image import (
    DelegationToken,
    QuotaEntity,
    ScramCredential,
    SecurityImage,
    quota_entity,
)
from barnabas.protocol.metadata.security_records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    SecurityRecord,
    UserScramCredentialRecord,
)
from barnabas.protocol.uuids import uuid_text

if TYPE_CHECKING:
    from barnabas.protocol.messages.security.acls import Acl


class SecurityBuilder:
    """Applies records to a copy of `image`; `build`, called once, returns the new image."""

    def __init__(self, image: SecurityImage) -> None:
        self._start = image
        self._acls: dict[bytes, Acl] | None = None
        self._scram: dict[tuple[str, int], ScramCredential] | None = None
        self._tokens: dict[str, DelegationToken] | None = None
        self._quotas: dict[QuotaEntity, Mapping[str, float]] | None = None

    def apply(self, record: SecurityRecord) -> None:
        """Apply one record, in log order. Raises ReplayError."""
        match record:
            case AccessControlEntryRecord() | RemoveAccessControlEntryRecord():
                self._change_acl(record)
            case UserScramCredentialRecord() | RemoveUserScramCredentialRecord():
                self._change_credential(record)
            case ClientQuotaRecord():
                self._change_quota(record)
            case DelegationTokenRecord() | RemoveDelegationTokenRecord():
                self._change_token(record)

    def build(self) -> SecurityImage:
        """Return the new image, which is the start image if no record changed it."""
        start = self._start
        if self._acls is None and self._scram is None and self._tokens is None and self._quotas is None:
            return start
        return SecurityImage(
            acls=start.acls if self._acls is None else self._acls,
            scram=start.scram if self._scram is None else self._scram,
            tokens=start.tokens if self._tokens is None else self._tokens,
            quotas=start.quotas if self._quotas is None else self._quotas,
        )

    def _change_acl(self, record: AccessControlEntryRecord | RemoveAccessControlEntryRecord) -> None:
        if self._acls is None:
            self._acls = dict(self._start.acls)
        if isinstance(record, AccessControlEntryRecord):
            from barnabas.protocol.messages.security.acls import Acl  # late: most brokers have no ACLs

            self._acls[record.acl_id] = Acl(
                record.resource_type,
                record.resource_name,
                record.pattern_type,
                record.principal,
                record.host,
                record.operation,
                record.permission,
            )
        elif self._acls.pop(record.acl_id, None) is None:
            raise ReplayError(f"an ACL with id {uuid_text(record.acl_id)} is deleted, which does not exist")

    def _change_credential(self, record: UserScramCredentialRecord | RemoveUserScramCredentialRecord) -> None:
        if self._scram is None:
            self._scram = dict(self._start.scram)
        key = (record.name, record.mechanism)
        if isinstance(record, UserScramCredentialRecord):
            self._scram[key] = ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)
        elif self._scram.pop(key, None) is None:
            raise ReplayError(
                f"the SCRAM credential of user {record.name!r} with mechanism {record.mechanism} is deleted, "
                "which does not exist"
            )

    def _change_quota(self, record: ClientQuotaRecord) -> None:
        if self._quotas is None:
            self._quotas = dict(self._start.quotas)
        entity = quota_entity(record.pairs)
        values = dict(self._quotas.get(entity, {}))
        if record.remove:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value
        if values:
            self._quotas[entity] = values
        else:
            self._quotas.pop(entity, None)

    def _change_token(self, record: DelegationTokenRecord | RemoveDelegationTokenRecord) -> None:
        if self._tokens is None:
            self._tokens = dict(self._start.tokens)
        if isinstance(record, RemoveDelegationTokenRecord):
            self._tokens.pop(record.token_id, None)
            return
        self._tokens[record.token_id] = DelegationToken(
            token_id=record.token_id,
            owner=record.owner,
            requester=record.requester,
            renewers=record.renewers,
            issued_ms=record.issue_timestamp_ms,
            max_ms=record.max_timestamp_ms,
            expires_ms=record.expiration_timestamp_ms,
        )
