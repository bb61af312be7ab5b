"""Changes of client quotas (AlterClientQuotas), with Kafka's INVALID_REQUEST per entity.

Users and client ids, alone or together, have producer_byte_rate, consumer_byte_rate, request_percentage and
controller_mutation_rate; addresses have connection_creation_rate. Removing a limit that is not set, or setting it to
its value, is a success without a record. Source: Kafka's ClientQuotaControlManager and QuotaConfig.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.plan import Plan
from barnabas.broker.metadata.security.image import QuotaEntity, quota_entity
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.security.client_quotas import (
    CLIENT_ID,
    IP,
    USER,
    AlteredQuota,
    QuotaAlteration,
    QuotaOp,
    entity_of,
    pairs_of,
)
from barnabas.protocol.metadata.records import MetadataRecord
from barnabas.protocol.metadata.security_records import ClientQuotaRecord, EntityData

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"

MAX_RECORDS: Final = 10_000
"""Kafka's MAX_RECORDS_PER_USER_OP."""

_MAX_INT: Final = ("an INT", float(2**31 - 1))
_MAX_LONG: Final = ("a LONG", float(2**63 - 1))
_FRACTION: Final = 1e-6

_CLIENT_KEYS: Final[Mapping[str, tuple[str, float] | None]] = {
    PRODUCER_BYTE_RATE: _MAX_LONG,
    CONSUMER_BYTE_RATE: _MAX_LONG,
    REQUEST_PERCENTAGE: None,
    CONTROLLER_MUTATION_RATE: None,
}
"""Key -> type and largest value of an integral limit, None for a float."""

_IP_KEYS: Final[Mapping[str, tuple[str, float] | None]] = {CONNECTION_CREATION_RATE: _MAX_INT}


def plan_alter_quotas(
    image: MetadataImage, entries: Sequence[QuotaAlteration], *, resolves: Callable[[str], bool]
) -> Plan[AlteredQuota]:
    """Plan the changes; one result per entity. `resolves` returns whether a text is an address or a host's name.

    Raises BrokerError POLICY_VIOLATION.
    """
    results: dict[QuotaEntity, AlteredQuota] = {}
    records: list[MetadataRecord] = []
    for entry in entries:
        entity = quota_entity(pairs_of(entry.entity))
        keys = [op.key for op in entry.ops]
        if entity in results or len(set(keys)) < len(keys):
            fault: str | None = f"Ignoring duplicate entity {_text(entity)}"  # as Kafka, also for a repeated key
        else:
            fault = _fault_of(entity, entry.ops, resolves)
        if fault is not None:
            results[entity] = AlteredQuota(error=ErrorCode.INVALID_REQUEST, message=fault, entity=entity_of(entity))
            continue
        results[entity] = AlteredQuota(entity=entity_of(entity))
        records += _records(image.security.quotas.get(entity, {}), entity, entry.ops)
    if len(records) > MAX_RECORDS:
        raise BrokerError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
    return Plan(list(results.values()), records)


def _records(present: Mapping[str, float], entity: QuotaEntity, ops: Sequence[QuotaOp]) -> list[ClientQuotaRecord]:
    records = []
    rows = tuple([EntityData(*each) for each in entity])
    for op in ops:
        if op.remove:
            if op.key in present:
                records.append(ClientQuotaRecord(rows, op.key, 0.0, remove=True))
        elif present.get(op.key) != op.value:
            records.append(ClientQuotaRecord(rows, op.key, op.value))
    return records


def _fault_of(entity: QuotaEntity, ops: Sequence[QuotaOp], resolves: Callable[[str], bool]) -> str | None:
    if not entity:
        return "Invalid empty client quota entity"
    for kind, name in entity:
        if kind not in (USER, CLIENT_ID, IP):
            return f"Unhandled client quota entity type: {printable(kind)}"
        if name == "":
            return f"Empty {kind} not supported"
    parts = dict(entity)
    keys = _CLIENT_KEYS
    if IP in parts:
        if len(parts) > 1:
            # Kafka's text, without the space
            return "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
        address = parts[IP]
        if address is not None and not resolves(address):
            return f"{printable(address)} is not a valid IP or resolvable host."
        keys = _IP_KEYS
    return next((fault for op in ops if not op.remove and (fault := _fault_of_value(keys, op)) is not None), None)


def _fault_of_value(keys: Mapping[str, tuple[str, float] | None], op: QuotaOp) -> str | None:
    if op.key not in keys:
        return f"Invalid configuration key {printable(op.key)}"
    if op.value <= 0:
        return f"Quota {op.key} must be greater than 0"
    if not math.isfinite(op.value):  # Kafka stores them for the two rates that are floats
        return f"Quota {op.key} must be a finite number"
    integral = keys[op.key]
    if integral is None:
        return None
    name, largest = integral
    if op.value > largest:
        return f"Proposed value for {op.key} is too large for {name}."
    if math.fmod(op.value, 1.0) > _FRACTION:
        return f"{op.key} cannot be a fractional value."
    return None


def _text(entity: QuotaEntity) -> str:
    """Return the entity as Kafka's ClientQuotaEntity prints it."""
    parts = ", ".join(f"{kind}={'null' if name is None else printable(name)}" for kind, name in entity)
    return f"ClientQuotaEntity(entries={{{parts}}})"
