"""Records of users, ACLs, quotas and tokens as JSON for `barnabas log dump`, with Kafka's field names."""

from __future__ import annotations

from typing import Any, Final

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

HIDDEN: Final = "[hidden]"


def security_fields(record: SecurityRecord) -> dict[str, Any]:
    """Return the fields of a record. Salts and keys of SCRAM credentials are replaced by `[hidden]`."""
    match record:
        case DelegationTokenRecord():
            return {
                "owner": record.owner,
                "requester": record.requester,
                "renewers": list(record.renewers),
                "issueTimestamp": record.issue_timestamp_ms,
                "maxTimestamp": record.max_timestamp_ms,
                "expirationTimestamp": record.expiration_timestamp_ms,
                "tokenId": record.token_id,
            }
        case UserScramCredentialRecord():
            return {
                "name": record.name,
                "mechanism": record.mechanism,
                "salt": HIDDEN,
                "storedKey": HIDDEN,
                "serverKey": HIDDEN,
                "iterations": record.iterations,
            }
        case ClientQuotaRecord():
            return {
                "entity": [{"entityType": kind, "entityName": name} for kind, name in record.entity],
                "key": record.key,
                "value": record.value,
                "remove": record.remove,
            }
        case AccessControlEntryRecord():
            return {
                "id": uuid_text(record.acl_id),
                "resourceType": record.resource_type,
                "resourceName": record.resource_name,
                "patternType": record.pattern_type,
                "principal": record.principal,
                "host": record.host,
                "operation": record.operation,
                "permissionType": record.permission,
            }
        case RemoveAccessControlEntryRecord(acl_id):
            return {"id": uuid_text(acl_id)}
        case RemoveUserScramCredentialRecord(name, mechanism):
            return {"name": name, "mechanism": mechanism}
        case RemoveDelegationTokenRecord(token_id):
            return {"tokenId": token_id}
