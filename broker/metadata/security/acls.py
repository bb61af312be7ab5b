"""Creation and deletion of ACLs.

    CreateAcls   per ACL INVALID_REQUEST: a resource type, pattern type, operation or permission that an ACL cannot
                 have; an empty name; a cluster other than `kafka-cluster`; a principal without a colon. Creating an
                 existing ACL is a success without a record. An operation need not fit its resource type
    DeleteAcls   per filter INVALID_REQUEST: an unknown code. Each ACL is deleted once, and listed by every filter that
                 selects it

More than 10,000 records refuse a whole request, as in Kafka: POLICY_VIOLATION for a creation, INVALID_REQUEST for a
deletion. Source: Kafka's AclApis and AclControlManager.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Final

from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.plan import Plan
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.security.acls import Acl, AclFilter, AclFilterResult, AclResult
from barnabas.protocol.messages.security.resources import (
    CLUSTER_NAME,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from barnabas.protocol.metadata.records import MetadataRecord
from barnabas.protocol.metadata.security_records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from barnabas.protocol.uuids import random_uuid

MAX_RECORDS: Final = 10_000
"""Kafka's MAX_RECORDS_PER_USER_OP."""


def plan_create_acls(image: MetadataImage, acls: Sequence[Acl]) -> Plan[AclResult]:
    """Plan the creation; one result each, in order. Raises BrokerError POLICY_VIOLATION."""
    existing = set(image.security.acls.values())
    records: list[MetadataRecord] = []
    results = []
    for acl in acls:
        fault = _fault_of(acl)
        results.append(AclResult() if fault is None else AclResult(error=ErrorCode.INVALID_REQUEST, message=fault))
        if fault is None and acl not in existing:
            existing.add(acl)
            records.append(AccessControlEntryRecord(random_uuid(), *acl))
    if len(records) > MAX_RECORDS:
        raise BrokerError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
    return Plan(results, records)


def plan_delete_acls(image: MetadataImage, filters: Sequence[AclFilter]) -> Plan[AclFilterResult]:
    """Plan the deletion; one result for each filter, in order. Raises BrokerError INVALID_REQUEST."""
    deleted: dict[bytes, None] = {}
    results = []
    for each in filters:
        fault = filter_fault(each)
        if fault is not None:
            results.append(AclFilterResult(error=ErrorCode.INVALID_REQUEST, message=fault))
            continue
        found = {acl_id: acl for acl_id, acl in image.security.acls.items() if each.matches(acl)}
        deleted.update(dict.fromkeys(found))
        if len(deleted) > MAX_RECORDS:
            message = f"Cannot remove more than {MAX_RECORDS} acls in a single delete operation."
            raise BrokerError(ErrorCode.INVALID_REQUEST, message)
        results.append(AclFilterResult.of(found.values()))
    return Plan(results, [RemoveAccessControlEntryRecord(acl_id) for acl_id in deleted])


def filter_fault(selected: AclFilter) -> str | None:
    """Return Kafka's sentence about a filter with an unknown code, or None."""
    if not (_is_known(ResourceType, selected.resource_type) and _is_known(PatternType, selected.pattern_type)):
        return "Unknown patternFilter."
    if not (_is_known(Operation, selected.operation) and _is_known(Permission, selected.permission)):
        return "Unknown entryFilter."
    return None


def _fault_of(acl: Acl) -> str | None:
    """Return Kafka's sentence about an ACL that cannot be created, or None."""
    if acl.resource_type == ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not acl.resource_name:
        return "Invalid empty resource name"
    if not _is_known(ResourceType, acl.resource_type) or acl.resource_type == ResourceType.ANY:
        return f"Invalid resourceType {_name(ResourceType, acl.resource_type)}"
    if acl.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        return f"Invalid patternType {_name(PatternType, acl.pattern_type)}"
    if not _is_known(Operation, acl.operation) or acl.operation == Operation.ANY:
        return f"Invalid operation {_name(Operation, acl.operation)}"
    if acl.permission not in (Permission.DENY, Permission.ALLOW):
        return f"Invalid permissionType {_name(Permission, acl.permission)}"
    if ":" not in acl.principal:
        return (
            f"Could not parse principal from `{printable(acl.principal)}` "
            "(no colon is present separating the principal type from the principal name)"
        )
    return None


def _is_known(kind: type[IntEnum], code: int) -> bool:
    return 0 < code < len(kind)


def _name(kind: type[IntEnum], code: int) -> str:
    """Return the name of a code; Kafka reads a code that it does not know as UNKNOWN."""
    return kind(code if _is_known(kind, code) else 0).name
