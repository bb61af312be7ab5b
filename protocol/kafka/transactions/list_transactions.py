"""ListTransactions (66)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.transactions.list_transactions import ListTransactionsRequest

decode_request, encode_response, encode_error = served(ListTransactionsRequest)
