"""AddPartitionsToTxn (24)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest

decode_request, encode_response, encode_error = served(AddPartitionsToTxnRequest)
