"""Produce (0), versions 3-9: a batch for one or more partitions."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.produce import ProduceRequest, ProduceResponse

PRODUCE: Final = ClientApi(ApiKey.PRODUCE, 3, 9, ProduceRequest, ProduceResponse)
