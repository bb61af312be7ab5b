"""The declared records of internal topics, by the names of Kafka's definitions."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from barnabas.protocol.wire.structures import Struct
from tests.support.kafka.definitions import NEWEST, load

MODULES = (
    "groups.consumer_group_values",
    "groups.consumer_protocol",
    "groups.keys",
    "groups.share_group_values",
    "groups.streams_group_values",
    "groups.values",
    "metadata.security_records",
    "share.state_records",
    "transactions.records",
)


def _declared() -> Iterator[tuple[str, type[Struct]]]:
    for module in MODULES:
        for name, found in vars(import_module(f"barnabas.protocol.{module}")).items():
            if name in load(NEWEST) and isinstance(found, type):
                yield name, found


DECLARED_RECORDS: dict[str, Any] = dict(_declared())
