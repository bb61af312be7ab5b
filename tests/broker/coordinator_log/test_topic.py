"""The mapping of keys to partitions of a coordinator's topic. The expected hashes were computed by a JVM."""

from __future__ import annotations

import pytest

from barnabas.broker.coordinator_log.topic import java_hash, partition_of


@pytest.mark.parametrize(
    ("text", "hashed"),
    [
        ("", 0),
        ("hello", 99162322),
        ("my-group-1", 1806687554),
        ("polygenelubricants", -(2**31)),
        ("gr\u00fcppe", -1233264812),
        ("\U0001f600", 1772899),
    ],
)
def test_the_hash_is_that_of_a_java_string(text: str, hashed: int) -> None:
    assert java_hash(text) == hashed


def test_a_negative_hash_loses_its_sign_and_not_its_highest_bit() -> None:
    assert partition_of("my-group", 50) == 12  # 36 if masked as by Kafka's producer


def test_the_lowest_hash_belongs_to_partition_0() -> None:
    assert partition_of("polygenelubricants", 50) == 0  # 48 if made positive by abs()
