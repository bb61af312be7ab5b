"""The error of every change that a broker with `read.only=true` refuses."""

from __future__ import annotations

from typing import NoReturn

from barnabas.protocol.errors import BrokerError, ErrorCode


def refuse_change(what: str) -> NoReturn:
    """Raise BrokerError POLICY_VIOLATION (44); `what` is the start of the sentence."""
    raise BrokerError(ErrorCode.POLICY_VIOLATION, f"{what}: this broker only reads (read.only=true)")
