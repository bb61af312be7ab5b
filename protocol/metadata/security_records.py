"""Records of users, ACLs, client quotas and delegation tokens in the metadata log.

    key  record                     version  fields (flexible: compact strings and arrays, then tagged fields)
    10   DelegationToken            0        owner, requester, renewers []string, issue, max and expiration timestamp
                                             int64 ms, token id
    11   UserScramCredential        0        name, mechanism int8, salt, stored key, server key bytes, iterations int32
    14   ClientQuota                0        entity [](type, name or null, tags), key, value float64, remove bool
    18   AccessControlEntry         0        id uuid, resource type int8, resource name, pattern type int8, principal,
                                             host, operation int8, permission int8
    19   RemoveAccessControlEntry   0        id uuid
    22   RemoveUserScramCredential  0        name, mechanism int8
    26   RemoveDelegationToken      0        token id

A token's record has no HMAC, which follows from its id and delegation.token.secret.key.
Source: the JSON definitions in Kafka's kafka-metadata jar.
"""

# Without `from __future__ import annotations`: NamedTuple would compile each field's annotation at every start.

from typing import NamedTuple, Self, TypeAlias

from barnabas.protocol.primitives import Reader, Writer


class DelegationTokenRecord(NamedTuple):
    """A token, or its new expiration. Principals are texts: `User:alice`."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp_ms: int
    max_timestamp_ms: int
    expiration_timestamp_ms: int
    token_id: str

    def encode(self, version: int) -> bytes:
        """Encode the message after the frame's header."""
        writer = Writer().compact_string(self.owner).compact_string(self.requester)
        writer.compact_array(self.renewers, writer.compact_string)
        writer.int64(self.issue_timestamp_ms).int64(self.max_timestamp_ms).int64(self.expiration_timestamp_ms)
        return writer.compact_string(self.token_id).tagged_fields().to_bytes()

    @classmethod
    def decode(cls, body: bytes, version: int) -> Self:
        """Decode the message. Raises DecodeError."""
        reader = Reader(body)
        record = cls(
            reader.compact_string(),
            reader.compact_string(),
            tuple(reader.compact_array(reader.compact_string)),
            reader.int64(),
            reader.int64(),
            reader.int64(),
            reader.compact_string(),
        )
        _end(reader)
        return record


class UserScramCredentialRecord(NamedTuple):
    """A user's credential of one mechanism: 1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""

    name: str
    mechanism: int
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"UserScramCredentialRecord({self.name!r}, mechanism={self.mechanism}, [hidden])"

    def encode(self, version: int) -> bytes:
        """Encode the message after the frame's header."""
        writer = Writer().compact_string(self.name).int8(self.mechanism)
        writer.compact_bytes(self.salt).compact_bytes(self.stored_key).compact_bytes(self.server_key)
        return writer.int32(self.iterations).tagged_fields().to_bytes()

    @classmethod
    def decode(cls, body: bytes, version: int) -> Self:
        """Decode the message. Raises DecodeError."""
        reader = Reader(body)
        record = cls(
            reader.compact_string(),
            reader.int8(),
            reader.compact_bytes(),
            reader.compact_bytes(),
            reader.compact_bytes(),
            reader.int32(),
        )
        _end(reader)
        return record


class ClientQuotaRecord(NamedTuple):
    """One limit of an entity, or its removal. `entity` has pairs of type and name; the name None is the default."""

    entity: tuple[tuple[str, str | None], ...]
    key: str
    value: float
    remove: bool = False

    def encode(self, version: int) -> bytes:
        """Encode the message after the frame's header."""
        writer = Writer().compact_array_length(len(self.entity))
        for entity_type, name in self.entity:
            writer.compact_string(entity_type).compact_nullable_string(name).tagged_fields()
        return writer.compact_string(self.key).float64(self.value).boolean(self.remove).tagged_fields().to_bytes()

    @classmethod
    def decode(cls, body: bytes, version: int) -> Self:
        """Decode the message. Raises DecodeError."""
        reader = Reader(body)
        entity = []
        for _ in range(reader.compact_array_length()):
            entity.append((reader.compact_string(), reader.compact_nullable_string()))
            reader.tagged_fields()
        record = cls(tuple(entity), reader.compact_string(), reader.float64(), reader.boolean())
        _end(reader)
        return record


class AccessControlEntryRecord(NamedTuple):
    """One ACL; codes as in protocol.messages.security.resources."""

    acl_id: bytes
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int

    def encode(self, version: int) -> bytes:
        """Encode the message after the frame's header."""
        writer = Writer().uuid(self.acl_id).int8(self.resource_type).compact_string(self.resource_name)
        writer.int8(self.pattern_type).compact_string(self.principal).compact_string(self.host)
        return writer.int8(self.operation).int8(self.permission).tagged_fields().to_bytes()

    @classmethod
    def decode(cls, body: bytes, version: int) -> Self:
        """Decode the message. Raises DecodeError."""
        reader = Reader(body)
        record = cls(
            reader.uuid(),
            reader.int8(),
            reader.compact_string(),
            reader.int8(),
            reader.compact_string(),
            reader.compact_string(),
            reader.int8(),
            reader.int8(),
        )
        _end(reader)
        return record


class RemoveAccessControlEntryRecord(NamedTuple):
    """Deletion of an ACL."""

    acl_id: bytes

    def encode(self, version: int) -> bytes:
        """Encode the message after the frame's header."""
        return Writer().uuid(self.acl_id).tagged_fields().to_bytes()

    @classmethod
    def decode(cls, body: bytes, version: int) -> Self:
        """Decode the message. Raises DecodeError."""
        reader = Reader(body)
        record = cls(reader.uuid())
        _end(reader)
        return record


class RemoveUserScramCredentialRecord(NamedTuple):
    """Deletion of a user's credential of one mechanism."""

    name: str
    mechanism: int

    def encode(self, version: int) -> bytes:
        """Encode the message after the frame's header."""
        return Writer().compact_string(self.name).int8(self.mechanism).tagged_fields().to_bytes()

    @classmethod
    def decode(cls, body: bytes, version: int) -> Self:
        """Decode the message. Raises DecodeError."""
        reader = Reader(body)
        record = cls(reader.compact_string(), reader.int8())
        _end(reader)
        return record


class RemoveDelegationTokenRecord(NamedTuple):
    """Deletion of a token."""

    token_id: str

    def encode(self, version: int) -> bytes:
        """Encode the message after the frame's header."""
        return Writer().compact_string(self.token_id).tagged_fields().to_bytes()

    @classmethod
    def decode(cls, body: bytes, version: int) -> Self:
        """Decode the message. Raises DecodeError."""
        reader = Reader(body)
        record = cls(reader.compact_string())
        _end(reader)
        return record


SecurityRecord: TypeAlias = (
    DelegationTokenRecord
    | UserScramCredentialRecord
    | ClientQuotaRecord
    | AccessControlEntryRecord
    | RemoveAccessControlEntryRecord
    | RemoveUserScramCredentialRecord
    | RemoveDelegationTokenRecord
)


def _end(reader: Reader) -> None:
    reader.tagged_fields()
    reader.ensure_end()
