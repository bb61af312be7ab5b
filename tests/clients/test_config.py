from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from barnabas.clients.addresses import Address, parse_address, parse_bootstrap
from barnabas.clients.config import AdminConfig, ClientConfig, ConsumerConfig, ProducerConfig
from barnabas.clients.errors import ClientConfigError, ClientError


@pytest.mark.parametrize("kind", [AdminConfig, ProducerConfig, ConsumerConfig])
def test_defaults_are_valid_and_frozen(kind: type[ClientConfig]) -> None:
    config = kind()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.bootstrap = "elsewhere:1"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("kind", "field", "value", "sentence"),
    [
        (ProducerConfig, "bootstrap", "", "bootstrap is empty"),
        (ProducerConfig, "bootstrap", "localhost", "'localhost' is not host:port"),
        (ProducerConfig, "bootstrap", "localhost:http", "the port of 'localhost:http'"),
        (ProducerConfig, "bootstrap", "localhost:70000", "between 1 and 65535"),
        (ProducerConfig, "bootstrap", "::1:9092", "in brackets"),
        (ProducerConfig, "acks", 2, "acks must be 0, 1 or -1, not 2"),
        (ProducerConfig, "acks", True, "acks must be 0, 1 or -1"),
        (ProducerConfig, "acks", "all", "acks must be 0, 1 or -1, not 'all'"),
        (ProducerConfig, "compression", "brotli", "compression must be one of none, gzip, snappy, lz4, zstd"),
        (ProducerConfig, "linger_ms", -1, "linger_ms must be a number"),
        (ProducerConfig, "linger_ms", "5", "linger_ms must be a number"),
        (ProducerConfig, "batch_size", 0, "batch_size=0 must be between 1 and"),
        (ProducerConfig, "batch_size", 1.5, "batch_size must be a whole number"),
        (ProducerConfig, "batch_size", 2 << 20, "cannot be above max_request_bytes"),
        (ProducerConfig, "buffer_memory", 1000, "cannot be below batch_size"),
        (ProducerConfig, "delivery_timeout_ms", 29_999, "must be at least linger_ms + request_timeout_ms = 30000"),
        (ProducerConfig, "retry_backoff_max_ms", 50, "retry_backoff_max_ms=50 must be between 100"),
        (ProducerConfig, "client_id", None, "client_id must be a string"),
        (ProducerConfig, "compression_level", "high", "compression_level must be a whole number or None"),
        (ConsumerConfig, "offset_reset", "middle", "offset_reset must be one of earliest, latest, error"),
        (ConsumerConfig, "isolation", "dirty", "isolation must be one of read_uncommitted, read_committed"),
        (ConsumerConfig, "check_crcs", "yes", "check_crcs must be True or False"),
        (ConsumerConfig, "max_wait_ms", -1, "max_wait_ms=-1 must be between 0"),
        (ConsumerConfig, "max_bytes", 200 << 20, "cannot be above max_frame_bytes"),
        (AdminConfig, "request_timeout_ms", 0, "request_timeout_ms=0 must be between 1"),
    ],
)
def test_an_invalid_value_is_refused_with_its_fields_name(
    kind: type[ClientConfig], field: str, value: Any, sentence: str
) -> None:
    with pytest.raises(ClientConfigError) as refusal:
        kind(**{field: value})
    assert sentence in str(refusal.value)
    assert isinstance(refusal.value, ValueError)
    assert isinstance(refusal.value, ClientError)


def test_bootstrap_lists_are_split_and_duplicates_dropped() -> None:
    assert parse_bootstrap(" a:1, [::1]:2 ,a:1,") == (Address("a", 1), Address("::1", 2))


def test_an_ipv6_address_is_written_in_brackets() -> None:
    assert str(parse_address("[fe80::1]:9092")) == "[fe80::1]:9092"
