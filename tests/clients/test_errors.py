"""Messages of the broker's errors."""

from __future__ import annotations

import pytest

from barnabas import TopicPartition
from barnabas.clients.errors import RefusedError
from barnabas.protocol.errors import ErrorCode


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ("the batch has 900 bytes", "orders-0: the batch has 900 bytes"),
        ("orders-0: the batch has 900 bytes", "orders-0: the batch has 900 bytes"),
        ("nothing is appended to orders-0: it is full", "nothing is appended to orders-0: it is full"),
        ("orders-01 is in the way", "orders-0: orders-01 is in the way"),
        (None, "orders-0: the offset is outside the log's range"),
    ],
)
def test_the_error_of_a_partition_names_it_once(message: str | None, sentence: str) -> None:
    refused = RefusedError.of_partition(TopicPartition("orders", 0), ErrorCode.OFFSET_OUT_OF_RANGE, message)
    assert refused.message == sentence


@pytest.mark.parametrize("kind", ["TOPIC", "GROUP", "CLUSTER"])
def test_a_denial_without_a_message_names_the_command_that_explains_it(kind: str) -> None:
    refused = RefusedError.of_topic("orders", ErrorCode[f"{kind}_AUTHORIZATION_FAILED"], None)
    assert "`barnabas acl explain" in refused.message
