"""DescribeTransactions (65), ListTransactions (66), DescribeProducers (61), and InitProducerId (22) to abort one."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from barnabas.protocol.messages.data.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.transactions.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from barnabas.protocol.messages.transactions.list_transactions import ListTransactionsRequest, ListTransactionsResponse

DESCRIBE_TRANSACTIONS: Final = ClientApi(
    ApiKey.DESCRIBE_TRANSACTIONS, 0, 0, DescribeTransactionsRequest, DescribeTransactionsResponse
)
LIST_TRANSACTIONS: Final = ClientApi(ApiKey.LIST_TRANSACTIONS, 0, 2, ListTransactionsRequest, ListTransactionsResponse)
DESCRIBE_PRODUCERS: Final = ClientApi(
    ApiKey.DESCRIBE_PRODUCERS, 0, 0, DescribeProducersRequest, DescribeProducersResponse
)
INIT_PRODUCER_ID: Final = ClientApi(ApiKey.INIT_PRODUCER_ID, 0, 6, InitProducerIdRequest, InitProducerIdResponse)
