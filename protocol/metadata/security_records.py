"""Records of users, ACLs, client quotas and delegation tokens in the metadata log, all of version 0.

They are declared: few logs have any, so their readers cost a usual start nothing. Source: the JSON definitions in
Kafka's kafka-metadata jar.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from barnabas.protocol.wire.structures import Struct
from barnabas.protocol.wire.types import (
    Bool,
    Float64,
    Int8,
    Int32,
    Int64,
    Named,
    NullableString,
    SecretBytes,
    String,
    Uuid,
)


class DelegationTokenRecord(Struct, flexible=0, frozen=True, kw_only=False):
    """A token, or its new expiration. Principals are texts: `User:alice`.

    A token's record has no HMAC, which follows from its id and delegation.token.secret.key.
    """

    owner: String
    requester: String
    renewers: tuple[String, ...]
    issue_timestamp_ms: Annotated[Int64, Named("issueTimestamp")]
    max_timestamp_ms: Annotated[Int64, Named("maxTimestamp")]
    expiration_timestamp_ms: Annotated[Int64, Named("expirationTimestamp")]
    token_id: String


class UserScramCredentialRecord(Struct, flexible=0, frozen=True, kw_only=False):
    """A user's credential of one mechanism: 1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""

    name: String
    mechanism: Int8
    salt: SecretBytes
    stored_key: SecretBytes
    server_key: SecretBytes
    iterations: Int32


class EntityData(Struct, frozen=True, kw_only=False):
    """A part of the entity of a quota; without a name it is the default."""

    entity_type: String
    entity_name: NullableString


class ClientQuotaRecord(Struct, flexible=0, frozen=True, kw_only=False):
    """One limit of an entity, or its removal."""

    entity: tuple[EntityData, ...]
    key: String
    value: Float64
    remove: Bool = False

    @property
    def pairs(self) -> tuple[tuple[str, str | None], ...]:
        """The entity as pairs of type and name."""
        return tuple([(each.entity_type, each.entity_name) for each in self.entity])


class AccessControlEntryRecord(Struct, flexible=0, frozen=True, kw_only=False):
    """One ACL; codes as in protocol.messages.security.resources."""

    acl_id: Annotated[Uuid, Named("id")]
    resource_type: Int8
    resource_name: String
    pattern_type: Int8
    principal: String
    host: String
    operation: Int8
    permission: Annotated[Int8, Named("permissionType")]


class RemoveAccessControlEntryRecord(Struct, flexible=0, frozen=True, kw_only=False):
    """Deletion of an ACL."""

    acl_id: Annotated[Uuid, Named("id")]


class RemoveUserScramCredentialRecord(Struct, flexible=0, frozen=True, kw_only=False):
    """Deletion of a user's credential of one mechanism."""

    name: String
    mechanism: Int8


class RemoveDelegationTokenRecord(Struct, flexible=0, frozen=True, kw_only=False):
    """Deletion of a token."""

    token_id: String


SecurityRecord: TypeAlias = (
    DelegationTokenRecord
    | UserScramCredentialRecord
    | ClientQuotaRecord
    | AccessControlEntryRecord
    | RemoveAccessControlEntryRecord
    | RemoveUserScramCredentialRecord
    | RemoveDelegationTokenRecord
)
