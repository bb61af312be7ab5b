"""Mirrors shown as configs of the default of all brokers, so that Kafka's tools can show and change definitions.

They are stored under another resource: see broker.metadata.mirrors.image.

`kafka-configs --entity-type brokers --entity-default --alter` replaces a definition with `--add-config-file` and a line
`barnabas.mirror.definition.NAME={...}`, and deletes one with `--delete-config`. A mirror is created by its own API,
which has what a check needs. The records of mirrored topics cannot be changed.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.mirrors.definitions import plan_delete_mirror, plan_replace_mirror
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.cluster.configs import OP_DELETE, OP_SET, ConfigChange
from barnabas.protocol.metadata.records import MetadataRecord
from barnabas.protocol.mirrors.fields import DEFINITION_PREFIX, TOPIC_PREFIX


def is_mirror_config(name: str) -> bool:
    """Return whether the name of a config of all brokers is one of mirrors."""
    return name.startswith((DEFINITION_PREFIX, TOPIC_PREFIX))


def plan_mirror_configs(image: MetadataImage, operations: Sequence[ConfigChange]) -> list[MetadataRecord]:
    """Return the records of operations on configs of mirrors. Raises BrokerError."""
    records: list[MetadataRecord] = []
    for operation in operations:
        if not operation.name.startswith(DEFINITION_PREFIX):
            message = f"{operation.name} is written by the mirror alone; delete the mirror instead"
            raise BrokerError(ErrorCode.INVALID_REQUEST, message)
        name = operation.name.removeprefix(DEFINITION_PREFIX)
        if operation.operation == OP_DELETE:
            if operation.name in image.mirrors.texts:
                records += plan_delete_mirror(image, name, releases_topics=False).records
        elif operation.operation == OP_SET and operation.value is not None:
            records += plan_replace_mirror(image, name, operation.value).records
        else:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"{operation.name} can only be set or deleted")
    return records
