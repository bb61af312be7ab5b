"""Share sessions: the partitions of a member at this broker, which its fetches do not repeat.

    epoch 0        opens a session, in place of an older one of the member
    epoch 1, 2...  each request has the next one; after 2^31-1 comes 1
    epoch -1       closes the session, and releases what the member has acquired

A closed connection closes its session, too. Errors: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH,
SHARE_SESSION_LIMIT_REACHED, INVALID_REQUEST for acknowledgements in a request that opens a session. Source: Kafka's
SharePartitionManager, ShareSessionCache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.share.share_fetch import FINAL_EPOCH, INITIAL_EPOCH

if TYPE_CHECKING:
    from barnabas.broker.network.session import Session

_LAST_EPOCH: Final = 0x7FFF_FFFF

MAX_SESSION_PARTITIONS: Final = 10_000
"""Partitions of one session: each fetch looks at all of them."""
MAX_PARTITIONS: Final = 200_000
"""Partitions of all sessions, so that no client can fill the memory with names. Kafka has neither bound."""

TopicIdPartition = tuple[bytes, int]


class ShareSession:
    """One member's session. `partitions` are in the order in which they are fetched."""

    __slots__ = ("connection", "epoch", "group_id", "member_id", "partitions")

    def __init__(self, group_id: str, member_id: str, connection: Session) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.connection = connection
        self.epoch = 1
        self.partitions: dict[TopicIdPartition, bool] = {}
        """By partition: whether the next answer must have it, even without records."""


class ShareSessions:
    """All sessions, by group and member."""

    def __init__(self, max_sessions: Callable[[], int], closed: Callable[[ShareSession], None]) -> None:
        """`closed` is called with a session that was closed, with or without a request, but not for a new one."""
        self._sessions: dict[tuple[str, str], ShareSession] = {}
        self._max_sessions = max_sessions
        self._closed = closed
        self.partition_count = 0
        """Number of partitions in all sessions."""

    def __len__(self) -> int:
        return len(self._sessions)

    def has_group(self, group_id: str) -> bool:
        """Return whether a member of the group has a session."""
        return any(each == group_id for each, _ in self._sessions)

    def begin_fetch(
        self,
        connection: Session,
        group_id: str,
        member_id: str,
        epoch: int,
        *,
        added: Iterable[TopicIdPartition],
        forgotten: Iterable[TopicIdPartition],
        acknowledges: bool,
    ) -> ShareSession:
        """Return the session of a fetch. Raises BrokerError."""
        key = group_id, member_id
        session = self._sessions.get(key)
        if epoch == INITIAL_EPOCH:
            if acknowledges:
                raise BrokerError(ErrorCode.INVALID_REQUEST, "acknowledgements in the request that opens a session")
            if session is not None:
                self._remove(session)
            if len(self._sessions) >= self._max_sessions():
                raise BrokerError(ErrorCode.SHARE_SESSION_LIMIT_REACHED, "there are too many share sessions")
            partitions = dict.fromkeys(added, False)
            self._ensure_within_limits(len(partitions), len(partitions))
            opened = self._sessions[key] = ShareSession(group_id, member_id, connection)
            opened.partitions = partitions
            self.partition_count += len(partitions)
            connection.on_closed[opened] = lambda: self.close(opened)
            return opened
        session = self._at(key, epoch)
        if epoch != FINAL_EPOCH:
            before = len(session.partitions)
            new = {each for each in added if each not in session.partitions}
            self._ensure_within_limits(before + len(new), len(new))  # first: a refused request does not count
            _count_on(session)
            session.partitions.update(dict.fromkeys(new, True))
            for each in forgotten:
                session.partitions.pop(each, None)
            self.partition_count += len(session.partitions) - before
        return session

    def is_open(self, session: ShareSession) -> bool:
        """Return whether the session was not closed or replaced."""
        return self._sessions.get((session.group_id, session.member_id)) is session

    def begin_acknowledge(self, group_id: str, member_id: str, epoch: int) -> ShareSession:
        """Return the session of acknowledgements. Raises BrokerError."""
        if epoch == INITIAL_EPOCH:
            raise BrokerError(ErrorCode.INVALID_SHARE_SESSION_EPOCH, "acknowledgements cannot open a share session")
        session = self._at((group_id, member_id), epoch)
        if epoch != FINAL_EPOCH:
            _count_on(session)
        return session

    def close(self, session: ShareSession) -> None:
        """Close a session, if it is still open."""
        if self.is_open(session):
            self._remove(session)
            self._closed(session)

    def _ensure_within_limits(self, size: int, more: int) -> None:
        """Raise BrokerError if a session may not have `size` partitions, of which `more` are new."""
        if size > MAX_SESSION_PARTITIONS:
            message = f"a share session has at most {MAX_SESSION_PARTITIONS:,} partitions"
            raise BrokerError(ErrorCode.SHARE_SESSION_LIMIT_REACHED, message)
        if self.partition_count + more > MAX_PARTITIONS:
            message = f"all share sessions together have at most {MAX_PARTITIONS:,} partitions"
            raise BrokerError(ErrorCode.SHARE_SESSION_LIMIT_REACHED, message)

    def _remove(self, session: ShareSession) -> None:
        del self._sessions[session.group_id, session.member_id]
        self.partition_count -= len(session.partitions)
        session.connection.on_closed.pop(session, None)

    def _at(self, key: tuple[str, str], epoch: int) -> ShareSession:
        session = self._sessions.get(key)
        if session is None:
            raise BrokerError(ErrorCode.SHARE_SESSION_NOT_FOUND, "the member has no share session")
        if epoch not in (FINAL_EPOCH, session.epoch):
            message = f"the share session is at epoch {session.epoch}, not {epoch}"
            raise BrokerError(ErrorCode.INVALID_SHARE_SESSION_EPOCH, message)
        return session


def _count_on(session: ShareSession) -> None:
    session.epoch = 1 if session.epoch == _LAST_EPOCH else session.epoch + 1
