"""AddOffsetsToTxn (25)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest

decode_request, encode_response, encode_error = served(AddOffsetsToTxnRequest)
