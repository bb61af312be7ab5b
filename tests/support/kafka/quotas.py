"""Setting quotas by AlterClientQuotas."""

from __future__ import annotations

from tests.support.kafka.kafka_wire import KafkaWire, schema


def alter_quotas(client: KafkaWire, kind: str, name: str | None, **values: float | None) -> None:
    """Set quotas of an entity, such as `client-id` and its name; the value None removes one."""
    kio = schema("alter_client_quotas", 1, "request")
    entity = (kio.EntityData(entity_type=kind, entity_name=name),)
    ops = tuple(
        kio.OpData(key=key, value=0.0 if value is None else float(value), remove=value is None)
        for key, value in values.items()
    )
    entries = (kio.EntryData(entity=entity, ops=ops),)
    answer = client.call("alter_client_quotas", 1, entries=entries, validate_only=False)
    assert [entry.error_code for entry in answer.entries] == [0]
