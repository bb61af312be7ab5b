"""DeleteShareGroupOffsets (92)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.groups.share_group_offsets import DeleteShareGroupOffsetsRequest

decode_request, encode_response, encode_error = served(DeleteShareGroupOffsetsRequest)
