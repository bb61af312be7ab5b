"""EndTxn (26)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.transactions.end_txn import EndTxnRequest

decode_request, encode_response, encode_error = served(EndTxnRequest)
