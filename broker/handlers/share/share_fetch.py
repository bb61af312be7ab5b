"""ShareFetch (key 78), versions 1 and 2: records for a member of a share group, with acknowledgements of earlier ones.

The checks of `access`; INVALID_REQUEST for a renewal that asks for records; then those of the session
(`broker/share/sessions`): SHARE_SESSION_LIMIT_REACHED is answered after `max_wait_ms`. Acknowledgements are carried out
before records are acquired, with the errors of ShareAcknowledge as `acknowledge_error` of their partition.

The partitions of the session are read in an order that changes with its epoch. Each may have an equal part of
`max_bytes` (at most fetch.max.bytes). Records are sent as they are stored: whole batches, of which `acquired` says what
the member may use. Errors per partition: UNKNOWN_TOPIC_ID, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION,
KAFKA_STORAGE_ERROR, COORDINATOR_NOT_AVAILABLE for a state that cannot be loaded, and UNKNOWN_SERVER_ERROR for one that
is lost or damaged, after `max_wait_ms`. With fewer than `min_bytes` the request waits, and so it does while the state
is loaded. Within a session an answer leaves out partitions without records and without errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.share.access import ensure_member, usable
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.share.acknowledging import Acknowledged, acknowledge
from barnabas.broker.share.fetch_wait import ShareFetchWait
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.share.share_fetch import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    ShareFetchPartition,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareFetchTopic,
)
from barnabas.protocol.wire.pieces import NO_RECORDS

if TYPE_CHECKING:
    import asyncio

    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe
    from barnabas.broker.share.partition.served import ServedSharePartition
    from barnabas.broker.share.partitions import SharePartitions
    from barnabas.broker.share.sessions import ShareSession

_Key = tuple[bytes, int]
_Results = dict[_Key, ShareFetchPartition]
_API: Final = ApiKey.SHARE_FETCH


class ShareFetchHandler:
    """Serves ShareFetch."""

    def __init__(
        self,
        shares: SharePartitions,
        store: MetadataView,
        loop: asyncio.AbstractEventLoop,
        fetch_max_bytes: int,
        probe: ApiProbe,
    ) -> None:
        """`fetch_max_bytes`: fetch.max.bytes."""
        self._shares = shares
        self._store = store
        self._loop = loop
        self._fetch_max_bytes = fetch_max_bytes
        self._probe = probe

    def __call__(self, session: Session, request: ShareFetchRequest) -> Deferred[ShareFetchResponse | Exception]:
        """Answer one ShareFetch request as the module docstring specifies."""
        group_id, member_id = ensure_member(self._store, session, request.group_id, request.member_id, _API)
        if request.is_renewal:
            _ensure_renewal(request)
        acknowledges = any(each.batches for topic in request.topics for each in topic.partitions)
        try:
            share_session = self._shares.sessions.begin_fetch(
                session,
                group_id,
                member_id,
                request.session_epoch,
                added=[(topic.topic_id, each.partition) for topic in request.topics for each in topic.partitions],
                forgotten=[(topic.topic_id, number) for topic in request.forgotten for number in topic.partitions],
                acknowledges=acknowledges,
            )
        except BrokerError as error:
            if error.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
                return self._refuse_later(request, error)
            raise
        fetch = _Fetch(self, session, request, share_session)
        if not acknowledges:
            fetch.begin({})
        else:
            acknowledge(
                self._shares,
                group_id,
                member_id,
                request.topics,
                ensure_usable=usable(self._store, session, _API),
                may_renew=request.may_renew,
                is_renewal=request.is_renewal,
            ).then(fetch.begin)
        return fetch.answer

    def _refuse_later(self, request: ShareFetchRequest, error: BrokerError) -> Deferred[ShareFetchResponse | Exception]:
        """Refuse after the client's own wait: it would try again immediately."""
        answer: Deferred[ShareFetchResponse | Exception] = Deferred(on_cancel=lambda: timer.cancel())
        timer = self._loop.call_later(max(0, request.max_wait_ms) / 1000, answer.resolve, error)
        return answer


class _Fetch:
    """One request: first its acknowledgements, then its records."""

    def __init__(
        self, handler: ShareFetchHandler, session: Session, request: ShareFetchRequest, share_session: ShareSession
    ) -> None:
        self._shares = handler._shares
        self._store = handler._store
        self._loop = handler._loop
        self._probe = handler._probe
        self._session = session
        self._request = request
        self._share_session = share_session
        self._epoch = share_session.epoch
        self._acknowledged: Acknowledged = {}
        self._wait: ShareFetchWait[_Results] | None = None
        self._max_bytes = max(0, min(request.max_bytes, handler._fetch_max_bytes))
        if session.quota is not None:
            self._max_bytes = min(self._max_bytes, session.quota.fetch_budget())
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self.answer: Deferred[ShareFetchResponse | Exception] = Deferred(on_cancel=self._cancel)

    def begin(self, acknowledged: Acknowledged) -> None:
        """Fetch, after the acknowledgements."""
        if self.answer.done:
            return
        self._acknowledged = acknowledged
        request = self._request
        if request.session_epoch == FINAL_EPOCH:
            self._shares.sessions.close(self._share_session)
            self._resolve({})
        elif request.is_renewal or request.max_records == 0 or self._max_bytes == 0:
            self._resolve({})
        else:
            try:
                found, watched = self._attempt(in_any_case=request.max_wait_ms <= 0 or self._shares.is_stopping)
            except Exception as error:  # noqa: BLE001 - an error of this request, not of the acknowledgements' append
                self.answer.resolve(error)
                return
            if found is not None:
                self._resolve(found)
                return
            self._wait = ShareFetchWait(
                lambda in_any_case: self._attempt(in_any_case=in_any_case),
                watched,
                max_wait_seconds=request.max_wait_ms / 1000,
                loop=self._loop,
                ended=self._shares.waits.discard,
            )
            self._shares.waits.add(self._wait)
            self._wait.response.then(self._resolve)

    def _cancel(self) -> None:
        if self._wait is not None:
            self._wait.response.cancel()

    def _attempt(self, *, in_any_case: bool) -> tuple[_Results | None, list[ServedSharePartition]]:
        """Acquire records if there are enough, or in any case; return what to wait for otherwise."""
        if self._share_session.epoch != self._epoch:
            raise BrokerError(ErrorCode.INVALID_SHARE_SESSION_EPOCH, "a later request of the share session was served")
        if not self._shares.sessions.is_open(self._share_session):
            raise BrokerError(ErrorCode.SHARE_SESSION_NOT_FOUND, "the share session was closed meanwhile")
        request, results = self._request, _Results()
        served = self._served(results)
        if not served:
            # A lasting error is answered after the client's own wait, as in Kafka: it would try again immediately.
            is_lasting = all(each.error is ErrorCode.UNKNOWN_SERVER_ERROR for each in results.values())
            return (None if results and is_lasting and not in_any_case else results), []
        refused = len(results)  # these errors wait for the records of the others
        each_bytes = max(1, self._max_bytes // len(served))
        if not in_any_case and self._min_bytes > 1:
            available = sum(
                self._read(each, results, each_bytes, request.max_records, False, False)[0] for each in served
            )
            if len(results) == refused and available < self._min_bytes:
                return None, served
        size = count = 0
        for each in served:
            if count >= request.max_records:
                break
            got, got_records = self._read(each, results, each_bytes, request.max_records - count, size == 0, True)
            size += got
            count += got_records
        if len(results) == refused and not in_any_case:
            return None, served
        return results, served

    def _served(self, results: _Results) -> list[ServedSharePartition]:
        """Return the share partitions of the session, the first one another with each epoch; note refused ones."""
        keys = list(self._share_session.partitions)
        if keys:
            turn = self._epoch % len(keys)
            keys = keys[turn:] + keys[:turn]
        ensure_usable = usable(self._store, self._session, _API)
        served = []
        for topic_id, number in keys:
            try:
                ensure_usable(topic_id, number)
                name = self._store.image.names[topic_id]
                served.append(self._shares.get(self._share_session.group_id, name, topic_id, number))
            except BrokerError as error:
                self._refuse(results, (topic_id, number), error)
        return served

    def _read(
        self,
        served: ServedSharePartition,
        results: _Results,
        max_bytes: int,
        max_records: int,
        at_least_one_batch: bool,
        acquire: bool,
    ) -> tuple[int, int]:
        """Return bytes and number of records of a share partition; note acquired records and errors in `results`."""
        key = served.key.topic_id, served.key.partition
        try:
            size, records, acquired = served.fetch(
                self._share_session.member_id,
                max_bytes=max_bytes,
                max_records=max_records,
                batch_size=self._request.batch_size,
                acquire_mode=self._request.acquire_mode,
                at_least_one_batch=at_least_one_batch,
                acquire=acquire,
            )
        except BrokerError as error:
            self._refuse(results, key, error)
            return 0, 0
        if records is None:
            return size, 0
        results[key] = ShareFetchPartition(partition=key[1], records=records, acquired=acquired)
        served.partition.probe.bytes_out += size
        count = sum(each.last_offset - each.first_offset + 1 for each in acquired)
        served.partition.probe.records_out += count
        return size, count

    def _refuse(self, results: _Results, key: _Key, error: BrokerError) -> None:
        self._probe.count_error(error.code.name.lower())
        results[key] = ShareFetchPartition(partition=key[1], error=error.code, message=error.message)

    def _resolve(self, results: _Results | Exception) -> None:
        if isinstance(results, Exception):
            self.answer.resolve(results)
            return
        partitions = self._share_session.partitions
        is_first = self._request.session_epoch == INITIAL_EPOCH
        if not self._request.is_renewal and self._request.session_epoch != FINAL_EPOCH:
            for key, must_answer in list(partitions.items()):
                result = results.get(key)
                if result is None:
                    if must_answer or is_first:
                        results[key] = ShareFetchPartition(partition=key[1])
                        partitions[key] = False
                    continue
                if result.records is not NO_RECORDS:
                    del partitions[key]  # the next fetch begins with others
                partitions[key] = result.error is not ErrorCode.NONE
        for key, error in self._acknowledged.items():
            result = results.setdefault(key, ShareFetchPartition(partition=key[1]))
            if error is not None:
                self._probe.count_error(error.code.name.lower())
                result.acknowledge_error, result.acknowledge_message = error.code, error.message
        if self._session.quota is not None:
            self._session.quota.fetched(sum(each.records.size for each in results.values()))
        topics: dict[bytes, list[ShareFetchPartition]] = {}
        for (topic_id, _), result in results.items():
            topics.setdefault(topic_id, []).append(result)
        self.answer.resolve(
            ShareFetchResponse(
                topics=[ShareFetchTopic(topic_id=topic_id, partitions=found) for topic_id, found in topics.items()],
                lock_timeout_ms=self._shares.settings_of(self._share_session.group_id).record_lock_duration_ms,
            )
        )


def _ensure_renewal(request: ShareFetchRequest) -> None:
    """Raise BrokerError unless a renewal asks for no records: reading them could take longer than the renewed locks."""
    names: Sequence[tuple[str, int]] = (
        ("maxBytes", request.max_bytes),
        ("minBytes", request.min_bytes),
        ("maxRecords", request.max_records),
        ("maxWaitMs", request.max_wait_ms),
    )
    wrong = "".join(f"{name} must be set to 0, " for name, value in names if value != 0)
    if wrong:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"{wrong}if isRenewAck is true.")
