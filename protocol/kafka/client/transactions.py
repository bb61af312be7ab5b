"""DescribeTransactions (65), ListTransactions (66), DescribeProducers (61), and InitProducerId (22) to abort one."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.kafka.client.fields import ERROR
from barnabas.protocol.kafka.data import describe_producers
from barnabas.protocol.kafka.schema import (
    INT16,
    INT32,
    INT64,
    NULLABLE_STRING,
    STRING,
    Array,
    Message,
    Struct,
    rows,
    since,
)
from barnabas.protocol.kafka.transactions import describe_transactions, list_transactions
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.describe_producers import (
    ActiveProducer,
    DescribeProducersPartitionResult,
    DescribeProducersResponse,
    DescribeProducersTopicResult,
)
from barnabas.protocol.messages.data.init_producer_id import InitProducerIdResponse
from barnabas.protocol.messages.transactions.add_partitions_to_txn import TxnTopic
from barnabas.protocol.messages.transactions.describe_transactions import (
    DescribeTransactionsResponse,
    TransactionDescription,
)
from barnabas.protocol.messages.transactions.list_transactions import ListTransactionsResponse, TransactionListing

DESCRIBE_TRANSACTIONS: Final = ClientApi(
    ApiKey.DESCRIBE_TRANSACTIONS,
    0,
    0,
    describe_transactions.REQUEST,
    Message(
        0,
        DescribeTransactionsResponse,
        _throttle_ms=INT32,
        transactions=rows(
            TransactionDescription,
            error=ERROR,
            transactional_id=STRING,
            state=STRING,
            timeout_ms=INT32,
            start_time_ms=INT64,
            producer_id=INT64,
            producer_epoch=INT16,
            topics=rows(TxnTopic, name=STRING, partitions=Array(INT32)),
        ),
    ),
)
"""Writes a DescribeTransactionsRequest, reads a DescribeTransactionsResponse."""

LIST_TRANSACTIONS: Final = ClientApi(
    ApiKey.LIST_TRANSACTIONS,
    0,
    2,
    list_transactions.REQUEST,
    Message(
        0,
        ListTransactionsResponse,
        _throttle_ms=INT32,
        error=ERROR,
        unknown_states=Array(STRING),
        transactions=rows(TransactionListing, transactional_id=STRING, producer_id=INT64, state=STRING),
    ),
)
"""Writes a ListTransactionsRequest, reads a ListTransactionsResponse. Filters are left out by versions without them."""

_PRODUCER: Final = Struct(
    ActiveProducer,
    producer_id=INT64,
    epoch=INT32,
    last_sequence=INT32,
    last_timestamp=INT64,
    coordinator_epoch=INT32,
    transaction_start_offset=INT64,
)
DESCRIBE_PRODUCERS: Final = ClientApi(
    ApiKey.DESCRIBE_PRODUCERS,
    0,
    0,
    describe_producers.REQUEST,
    Message(
        0,
        DescribeProducersResponse,
        _throttle_ms=INT32,
        topics=rows(
            DescribeProducersTopicResult,
            name=STRING,
            partitions=rows(
                DescribeProducersPartitionResult,
                partition=INT32,
                error=ERROR,
                message=NULLABLE_STRING,
                producers=Array(_PRODUCER),
            ),
        ),
    ),
)
"""Writes a DescribeProducersRequest, reads a DescribeProducersResponse."""

INIT_PRODUCER_ID: Final = ClientApi(
    ApiKey.INIT_PRODUCER_ID,
    0,
    5,
    Message(
        2,
        transactional_id=NULLABLE_STRING,
        transaction_timeout_ms=INT32,
        producer_id=since(3, INT64),
        producer_epoch=since(3, INT16),
    ),
    Message(2, InitProducerIdResponse, _throttle_ms=INT32, error=ERROR, producer_id=INT64, producer_epoch=INT16),
)
"""Writes an InitProducerIdRequest, reads an InitProducerIdResponse."""
