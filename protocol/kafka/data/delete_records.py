"""DeleteRecords (21)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.data.delete_records import DeleteRecordsRequest

decode_request, encode_response, encode_error = served(DeleteRecordsRequest)
