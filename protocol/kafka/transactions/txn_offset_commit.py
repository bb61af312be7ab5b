"""TxnOffsetCommit (28)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest

decode_request, encode_response, encode_error = served(TxnOffsetCommitRequest)
