"""WriteTxnMarkers (27)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.transactions.write_txn_markers import WriteTxnMarkersRequest

decode_request, encode_response, encode_error = served(WriteTxnMarkersRequest)
