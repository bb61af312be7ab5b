"""Expiry of committed offsets: Kafka's rule, case by case."""

from __future__ import annotations

import pytest

from barnabas.broker.groups.group import SINCE_COMMIT, OffsetExpiry
from barnabas.broker.groups.offsets.expiry import is_expired
from barnabas.protocol.groups.values import OffsetCommitValue

RETENTION_MS = 1000


@pytest.mark.parametrize(
    ("expiry", "expire_timestamp", "now_ms", "expected"),
    [
        (SINCE_COMMIT, -1, 5999, False),
        (SINCE_COMMIT, -1, 6000, True),
        (OffsetExpiry(7000), -1, 6000, False),
        (OffsetExpiry(7000), -1, 8000, True),
        (SINCE_COMMIT, 9000, 8999, False),
        (SINCE_COMMIT, 5100, 5100, True),
        (OffsetExpiry(7000), 5100, 5100, True),
    ],
)
def test_an_offset_ages_from_its_commit_or_from_the_time_its_group_became_empty_unless_it_has_its_own_expiry(
    expiry: OffsetExpiry, expire_timestamp: int, now_ms: int, expected: bool
) -> None:
    value = OffsetCommitValue(1, commit_timestamp=5000, expire_timestamp=expire_timestamp)
    assert is_expired(value, expiry, now_ms=now_ms, retention_ms=RETENTION_MS) is expected
