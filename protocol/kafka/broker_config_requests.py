"""The client's side of DescribeCluster and of a broker's DescribeConfigs, for `barnabas acl explain`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.kafka.cluster import describe_cluster, describe_configs
from barnabas.protocol.kafka.schema import BOOL, INT8, INT16, INT32, NULLABLE_STRING, STRING, Message, rows
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.configs import BROKER_RESOURCE


class DescribedProperty(NamedTuple):
    """A property of a broker. `value` is None if it is not set, or if the broker hides it as sensitive."""

    name: str
    value: str | None
    is_sensitive: bool


class DescribedBroker(NamedTuple):
    """A broker's properties, or Kafka's error code and message."""

    error: int
    message: str | None
    properties: Sequence[DescribedProperty]


class _Resource(NamedTuple):
    type: int
    name: str
    names: Sequence[str]


class _Request(NamedTuple):
    resources: Sequence[_Resource]
    include_synonyms: bool = False
    include_documentation: bool = False


def _node_ids(brokers: list[int], **_: Any) -> list[int]:
    return brokers


def _first(results: list[DescribedBroker]) -> DescribedBroker:
    return results[0]


_CLUSTER: Final = Message(
    0,
    _node_ids,
    _throttle_ms=INT32,
    _error=INT16,
    _message=NULLABLE_STRING,
    _cluster_id=STRING,
    _controller_id=INT32,
    brokers=rows(lambda node_id: node_id, node_id=INT32, _host=STRING, _port=INT32, _rack=NULLABLE_STRING),
    _operations=INT32,
)
_SYNONYMS: Final = rows(dict, name=STRING, value=NULLABLE_STRING, source=INT8)
_CONFIGS: Final = Message(
    0,
    _first,
    _throttle_ms=INT32,
    results=rows(
        DescribedBroker,
        error=INT16,
        message=NULLABLE_STRING,
        _type=INT8,
        _name=STRING,
        properties=rows(
            DescribedProperty,
            name=STRING,
            value=NULLABLE_STRING,
            _read_only=BOOL,
            _source=INT8,
            is_sensitive=BOOL,
            _synonyms=_SYNONYMS,
            _data_type=INT8,
            _documentation=NULLABLE_STRING,
        ),
    ),
)


NODE_IDS: Final = ClientApi(ApiKey.DESCRIBE_CLUSTER, 0, 0, describe_cluster.REQUEST, _CLUSTER)
"""The cluster's brokers. The answer is a list of node ids."""

BROKER_PROPERTIES: Final = ClientApi(ApiKey.DESCRIBE_CONFIGS, 4, 4, describe_configs.REQUEST, _CONFIGS)
"""Properties of a broker: see `properties_request`. The answer is a DescribedBroker."""


def properties_request(node_id: int, names: Sequence[str]) -> Any:
    """Return the request of BROKER_PROPERTIES."""
    return _Request([_Resource(BROKER_RESOURCE, str(node_id), names)])
