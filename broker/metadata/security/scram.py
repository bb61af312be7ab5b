"""Changes of SCRAM credentials (AlterUserScramCredentials), with Kafka's errors per user.

    35 UNSUPPORTED_VERSION          `metadata.version` is below 11
    92 DUPLICATE_RESOURCE           two changes of one user, also of different mechanisms
    93 UNACCEPTABLE_CREDENTIAL      no user name; fewer than 4,096 or more than 16,384 iterations; no salted password
    33 UNSUPPORTED_SASL_MECHANISM   an unknown mechanism
    91 RESOURCE_NOT_FOUND           the deletion of a credential that does not exist

The request contains the salted password, which suffices to log in; the record has the two keys derived from it.
Source: Kafka's ScramControlManager.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.plan import Plan
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.security.scram_credentials import (
    AlteredScramUser,
    AlterUserScramCredentialsRequest,
    ScramDeletion,
    ScramUpsertion,
)
from barnabas.protocol.metadata.levels import SCRAM_FROM
from barnabas.protocol.metadata.records import MetadataRecord
from barnabas.protocol.metadata.security_records import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from barnabas.protocol.sasl.scram_keys import MAX_ITERATIONS, MIN_ITERATIONS, SCRAM_MECHANISMS, keys_of_salted

_MECHANISMS: Final = {mechanism.code: mechanism for mechanism in SCRAM_MECHANISMS.values()}

_Fault = tuple[ErrorCode, str]


def plan_alter_scram(image: MetadataImage, request: AlterUserScramCredentialsRequest) -> Plan[AlteredScramUser]:
    """Plan the changes; one result per user. The changes of users without an error are carried out."""
    changes: dict[str, ScramDeletion | ScramUpsertion] = {}
    faults: dict[str, _Fault] = {}
    for change in request.changes():
        name = change.name
        if name in faults:
            continue
        if changes.pop(name, None) is not None:
            message = "A user credential cannot be altered twice in the same request"
            faults[name] = (ErrorCode.DUPLICATE_RESOURCE, message)
            continue
        fault = _fault_of(image, change)
        if fault is None:
            changes[name] = change
        else:
            faults[name] = fault
    results = [AlteredScramUser(user=name) for name in changes]
    results += [AlteredScramUser(user=name, error=code, message=message) for name, (code, message) in faults.items()]
    return Plan(results, [_record(change) for change in changes.values()])


def _fault_of(image: MetadataImage, change: ScramDeletion | ScramUpsertion) -> _Fault | None:
    if (image.level or 0) < SCRAM_FROM:
        return ErrorCode.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM"
    if not change.name:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"
    if change.mechanism not in _MECHANISMS:
        return ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"
    if isinstance(change, ScramDeletion):
        if (change.name, change.mechanism) in image.security.scram:
            return None
        return ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
    if change.iterations < MIN_ITERATIONS:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"
    if change.iterations > MAX_ITERATIONS:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"
    if not change.salted_password:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "The salted password is empty"
    return None


def _record(change: ScramDeletion | ScramUpsertion) -> MetadataRecord:
    if isinstance(change, ScramDeletion):
        return RemoveUserScramCredentialRecord(change.name, change.mechanism)
    keys = keys_of_salted(_MECHANISMS[change.mechanism], change.salted_password, change.salt, change.iterations)
    return UserScramCredentialRecord(change.name, change.mechanism, *keys)
