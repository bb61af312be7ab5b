"""A state of a transactional id that is too large for its topic."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.broker.coordinator_log.parts import LogParts
from barnabas.broker.transactions.log import TransactionLog
from barnabas.broker.transactions.metadata import TransactionMetadata
from barnabas.protocol.errors import BrokerError, ErrorCode
from tests.support.manual_loop import ManualLoop


def test_a_state_that_is_too_large_is_refused_and_has_a_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    loop = ManualLoop()
    none = cast(Any, None)
    store = cast(Any, SimpleNamespace(image=SimpleNamespace(topics={}, features={})))
    log = TransactionLog(LogParts(none, store, none, none, none, lambda: 0, loop))
    encode = log._encoding(TransactionMetadata("id", 1))
    with pytest.raises(BrokerError, match=r"does not fit max\.message\.bytes=10") as refused:
        encode(10)
    assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    (record,) = caplog.records
    assert record.getMessage().startswith("the state of transactional.id=id could not be written: the record of ")
    loop.close()
