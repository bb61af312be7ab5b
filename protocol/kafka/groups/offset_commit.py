"""OffsetCommit (8)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.groups.offset_commit import OffsetCommitRequest

decode_request, encode_response, encode_error = served(OffsetCommitRequest)
