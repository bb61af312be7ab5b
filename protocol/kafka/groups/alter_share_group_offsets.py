"""AlterShareGroupOffsets (91)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.groups.share_group_offsets import AlterShareGroupOffsetsRequest

decode_request, encode_response, encode_error = served(AlterShareGroupOffsetsRequest)
