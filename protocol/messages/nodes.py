"""Nodes of a cluster, as several answers name them."""

from __future__ import annotations

from barnabas.protocol.wire.fields import since
from barnabas.protocol.wire.structures import Struct
from barnabas.protocol.wire.types import Int32, NullableString, String


class BrokerAddress(Struct, kw_only=False):
    """A broker's address for clients of the listener that received the request."""

    node_id: Int32
    host: String
    port: Int32
    rack: NullableString = since(1, default=None)


class LeaderAndEpoch(Struct):
    """The node that leads a partition, -1 if the broker does not know it, and its epoch."""

    node_id: Int32 = -1
    epoch: Int32 = -1
