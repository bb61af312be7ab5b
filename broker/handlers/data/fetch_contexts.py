"""What the fetch session of a request means for the partitions to read and for the response.

    epoch -1        no session; the named one is closed
    epoch 0         a full request: its response creates a session if the cache has room; the named one is closed
    other epochs    an incremental request: it changes the session's partitions, and fetches all of them

Refused without partitions: FETCH_SESSION_ID_NOT_FOUND; INVALID_FETCH_SESSION_EPOCH for another epoch than the session's
next one; FETCH_SESSION_TOPIC_ID_ERROR if the session has topic ids and the request's version has names, or the reverse.
A client then sends a full request.

Differs from Kafka: a session that would exceed the limits of partitions, or would have to keep a name that is too long
for a topic, is closed, with FETCH_SESSION_ID_NOT_FOUND. A fetch that waits is answered early when its session is
evicted or has received the next request.

Source: Kafka's FetchManager.java, FetchContext.java.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.data.fetch_order import matching
from barnabas.broker.handlers.data.fetch_session import FetchSession, next_epoch
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.fetch import NEW_SESSION, NO_SESSION, FetchResponse, FetchTopic, topic_key
from barnabas.protocol.topic_name import MAX_TOPIC_NAME_LENGTH
from barnabas.protocol.wire.pieces import NO_RECORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from barnabas.broker.handlers.data.fetch_session import Reader
    from barnabas.broker.handlers.data.fetch_session_cache import FetchSessionCache
    from barnabas.broker.network.session import Session
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.partitions.registry import PartitionRegistry, TopicName
    from barnabas.protocol.messages.data.fetch import (
        FetchPartition,
        FetchPartitionResult,
        FetchRequest,
        FetchTopicResult,
        PartitionKey,
        TopicKey,
    )

NO_SESSION_ID: Final = 0
"""Session id of responses without a session."""

CHECK_SECONDS: Final = 10.0
"""How often a session looks for offsets that have changed without waking it."""


class FetchContexts:
    """The sessions of a broker, as the Fetch handler uses them."""

    def __init__(
        self,
        cache: FetchSessionCache,
        partitions: PartitionRegistry,
        topic_name: TopicName,
        monotonic: Callable[[], float],
    ) -> None:
        self.cache = cache
        self._partitions = partitions
        self._topic_name = topic_name
        self._monotonic = monotonic

    def begin(self, client: Session, request: FetchRequest) -> FullFetch | IncrementalFetch | FetchResponse | None:
        """Close, update or look up the request's session. None: no session. A FetchResponse refuses the request."""
        cache = self.cache
        session = cache.get(request.session_id)
        if request.session_epoch in (NEW_SESSION, NO_SESSION):
            if session is not None:
                cache.remove(session)
            is_new = request.session_epoch == NEW_SESSION
            return FullFetch(self, request, _reader(client, request)) if is_new else None
        if session is None:
            return _refusal(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            return _refusal(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != request.uses_topic_ids:
            return _refusal(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        if _has_long_name(request):
            cache.remove(session)
            return _refusal(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        session.update(request.topics, request.forgotten_keys())
        if not session.partitions:
            cache.remove(session)
            return None
        if not cache.has_room_for_more(session):
            cache.remove(session)
            return _refusal(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        cache.touch(session)
        session.epoch = next_epoch(session.epoch)
        session.read_by(_reader(client, request))
        if session.last_used - session.checked >= CHECK_SECONDS:
            session.find_moved()
        if session.waiting is not None:
            session.waiting.finish_soon()
        return self.resume(session, session.epoch)

    def resume(self, session: FetchSession, epoch: int) -> IncrementalFetch:
        """Return the context of the request after which the session had `epoch`."""
        return IncrementalFetch(session, epoch, self._partitions, self._topic_name)

    def creating(
        self, request: FetchRequest, reader: Reader, topics: list[FetchTopicResult]
    ) -> Generator[None, None, int]:
        """Create the session of a full request from its response; return its id, or 0 if the cache has no room.

        A step for each partition. Between them the partitions may change, and the cache may fill.
        """
        cache = self.cache
        is_follower = request.follower_id >= 0
        size = sum([len(topic.partitions) for topic in topics])
        if _has_long_name(request) or not cache.make_room(size, is_privileged=is_follower):
            return NO_SESSION_ID
        cache.reserve(size)
        session = FetchSession(
            NO_SESSION_ID,
            reader,
            uses_topic_ids=request.uses_topic_ids,
            is_privileged=is_follower,
            now=self._monotonic(),
        )
        fetches: dict[PartitionKey, FetchPartition] = {}
        try:
            for asked in request.topics:
                key = asked.key
                for each in asked.partitions:
                    fetches[key, each.partition] = each
                    yield
            for topic in topics:
                key = topic.key
                for result in topic.partitions:
                    fetch = fetches[key, result.partition]
                    entry = session.add(topic.name, topic.topic_id, fetch)
                    entry.sent(result)
                    session.settle(entry, self._partitions.get(topic.name, result.partition))
                    yield
        except BaseException:
            session.close()  # or it would watch the partitions
            raise
        finally:
            cache.reserve(-size)
        if not cache.make_room(size, is_privileged=is_follower):
            session.close()
            return NO_SESSION_ID
        session.session_id = cache.new_session_id()
        cache.add(session)
        return session.session_id


class FullFetch:
    """A request whose response creates a session."""

    __slots__ = ("_contexts", "_reader", "_request")

    def __init__(self, contexts: FetchContexts, request: FetchRequest, reader: Reader) -> None:
        self._contexts = contexts
        self._request = request
        self._reader = reader

    def sending(self, topics: list[FetchTopicResult]) -> Generator[None, None, int]:
        """Create the session from the response's results; return its id."""
        return self._contexts.creating(self._request, self._reader, topics)


class IncrementalFetch:
    """A request that continues a session."""

    __slots__ = ("_epoch", "_partitions", "_results", "_topic_name", "session")

    def __init__(self, session: FetchSession, epoch: int, partitions: PartitionRegistry, topic_name: TopicName) -> None:
        self.session = session
        self._epoch = epoch
        self._partitions = partitions
        self._topic_name = topic_name
        self._results: list[FetchTopicResult] = []

    @property
    def is_current(self) -> bool:
        """Whether the session has received no further request."""
        return self.session.epoch == self._epoch

    def topics(self) -> list[FetchTopic]:
        """Return the partitions to read now, in the session's order."""
        topics: list[FetchTopic] = []
        partitions: list[FetchPartition] = []
        last_key: TopicKey | None = None
        uses_topic_ids = self.session.uses_topic_ids
        for entry in self.session.pending_in_order():
            if uses_topic_ids and not entry.topic:
                entry.topic = self._topic_name(entry.topic_id) or ""
            key = topic_key(entry.topic, entry.topic_id)
            if key != last_key:
                partitions = []
                topics.append(FetchTopic(name=entry.topic, topic_id=entry.topic_id, partitions=partitions))
                last_key = key
            partitions.append(entry.fetch)
        return topics

    def watch_pending(self, read: Iterable[Partition]) -> None:
        """Watch the pending partitions that were read: a wait begins. What comes to the others does not end it."""
        were_read = set(read)
        for entry in self.session.pending:
            partition = self._partitions.get(entry.topic, entry.fetch.partition)
            if partition in were_read:
                entry.watch(partition)
            else:
                entry.unwatch()

    def changed(self, results: list[FetchTopicResult]) -> list[FetchTopicResult]:
        """Return those of the results that the response must contain."""
        self._results = results
        partitions = self.session.partitions

        def is_changed(topic: FetchTopicResult, result: FetchPartitionResult) -> bool:
            entry = partitions.get((topic.key, result.partition))
            return entry is not None and entry.differs(result)

        return matching(results, is_changed)

    def sending(self, topics: list[FetchTopicResult]) -> Generator[None, None, int]:
        """Keep what the response `topics` says, and settle the partitions that were read. Returns the session's id.

        A step for each partition. It ends when the session's next request comes, whose client has not waited for the
        response: that request's wait must not be disturbed.
        """
        session = self.session
        partitions = session.partitions
        for topic in topics:
            key = topic.key
            for result in topic.partitions:
                entry = partitions.get((key, result.partition))
                if entry is not None:
                    entry.sent(result)
                    if result.records is not NO_RECORDS:
                        session.move_to_end(entry)
                yield
                if not self.is_current:
                    return session.session_id
        for topic in self._results:
            key = topic.key
            for result in topic.partitions:
                settled = partitions.get((key, result.partition))
                if settled is not None:
                    session.settle(settled, self._partitions.get(settled.topic, result.partition))
                yield
                if not self.is_current:
                    return session.session_id
        return session.session_id


def _reader(client: Session, request: FetchRequest) -> Reader:
    access = client.access
    generation = 0 if access is None else access.generation
    return (request.isolation, request.follower_id >= 0, access, generation)


def _has_long_name(request: FetchRequest) -> bool:
    """Return whether a name is too long for a topic: sessions full of them, which fail, would fill the memory."""
    return any(len(topic.name) > MAX_TOPIC_NAME_LENGTH for topic in request.topics)


def _refusal(error: ErrorCode) -> FetchResponse:
    return FetchResponse(topics=(), error=error)
