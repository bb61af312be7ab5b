"""Metadata (3), versions 4-13: brokers, topics, and the leaders of their partitions.

Version 4 is the first in which a request can leave missing topics uncreated. Topic ids are there from 10 on.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.topics.metadata import MetadataRequest, MetadataResponse

METADATA: Final = ClientApi(ApiKey.METADATA, 4, 13, MetadataRequest, MetadataResponse)
