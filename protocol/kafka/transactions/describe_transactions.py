"""DescribeTransactions (65)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.transactions.describe_transactions import DescribeTransactionsRequest

decode_request, encode_response, encode_error = served(DescribeTransactionsRequest)
