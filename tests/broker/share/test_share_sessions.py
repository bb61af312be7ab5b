"""Bounds of share sessions, and what they count."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.share import sessions as module
from barnabas.broker.share.sessions import ShareSession, ShareSessions
from barnabas.protocol.errors import BrokerError, ErrorCode


class Members:
    """Members with one connection."""

    def __init__(self) -> None:
        self.closed: list[ShareSession] = []
        self.sessions = ShareSessions(lambda: 100, self.closed.append)
        self.connection: Any = SimpleNamespace(on_closed={})

    def fetch(self, member: str, epoch: int, added: range = range(0), forgotten: range = range(0)) -> ShareSession:
        return self.sessions.begin_fetch(
            self.connection,
            "g",
            member,
            epoch,
            added=[(b"t", each) for each in added],
            forgotten=[(b"t", each) for each in forgotten],
            acknowledges=False,
        )


def test_a_session_has_a_bounded_number_of_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SESSION_PARTITIONS", 5)
    members = Members()
    session = members.fetch("a", 0, range(4))
    members.fetch("a", 1, range(5), range(1))
    with pytest.raises(BrokerError) as refused:
        members.fetch("a", 2, range(6))
    assert refused.value.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert session.epoch == 2  # a refused request does not count
    assert len(session.partitions) == members.sessions.partition_count == 4
    with pytest.raises(BrokerError, match="at most 5 partitions"):
        members.fetch("b", 0, range(6))
    assert len(members.sessions) == 1


def test_all_sessions_together_have_a_bounded_number_of_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PARTITIONS", 6)
    members = Members()
    first = members.fetch("a", 0, range(4))
    with pytest.raises(BrokerError, match="together have at most 6 partitions"):
        members.fetch("b", 0, range(3))
    members.fetch("b", 0, range(2))
    members.sessions.close(first)
    assert members.closed == [first]
    assert members.sessions.partition_count == 2
    members.fetch("b", 0, range(6))
    assert members.sessions.partition_count == 6
