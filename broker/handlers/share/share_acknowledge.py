"""ShareAcknowledge (key 79), versions 1 and 2: what a member made of the records that it acquired.

The checks of `access`, then the session's (`broker/share/sessions`), then those of each partition: INVALID_REQUEST for
acknowledgements that are not in order (`broker/share/acknowledging`), UNKNOWN_TOPIC_ID, TOPIC_AUTHORIZATION_FAILED
unless the client may READ the topic, UNKNOWN_TOPIC_OR_PARTITION, INVALID_RECORD_STATE. The answer comes once the new
states are as durable as the topic `__share_group_state` demands. The final epoch closes the session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.share.access import ensure_member, usable
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.share.acknowledging import Acknowledged, acknowledge
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.share.share_acknowledge import (
    AcknowledgedPartition,
    AcknowledgedTopic,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)
from barnabas.protocol.messages.share.share_fetch import FINAL_EPOCH

if TYPE_CHECKING:
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe
    from barnabas.broker.share.partitions import SharePartitions


class ShareAcknowledgeHandler:
    """Serves ShareAcknowledge."""

    def __init__(self, shares: SharePartitions, store: MetadataView, probe: ApiProbe) -> None:
        self._shares = shares
        self._store = store
        self._probe = probe

    def __call__(self, session: Session, request: ShareAcknowledgeRequest) -> Deferred[ShareAcknowledgeResponse]:
        """Answer one ShareAcknowledge request as the module docstring specifies."""
        api = ApiKey.SHARE_ACKNOWLEDGE
        group_id, member_id = ensure_member(self._store, session, request.group_id, request.member_id, api)
        share_session = self._shares.sessions.begin_acknowledge(group_id, member_id, request.session_epoch)
        answer: Deferred[ShareAcknowledgeResponse] = Deferred()

        def acknowledged(errors: Acknowledged) -> None:
            if request.session_epoch == FINAL_EPOCH:
                self._shares.sessions.close(share_session)
            answer.resolve(self._response(group_id, errors))

        acknowledge(
            self._shares,
            group_id,
            member_id,
            request.topics,
            ensure_usable=usable(self._store, session, api),
            may_renew=request.may_renew,
            is_renewal=request.is_renewal,
        ).then(acknowledged)
        return answer

    def _response(self, group_id: str, errors: Acknowledged) -> ShareAcknowledgeResponse:
        topics: dict[bytes, list[AcknowledgedPartition]] = {}
        for (topic_id, number), error in errors.items():
            result = AcknowledgedPartition(partition=number)
            if error is not None:
                self._probe.count_error(error.code.name.lower())
                result.error, result.message = error.code, error.message
            topics.setdefault(topic_id, []).append(result)
        return ShareAcknowledgeResponse(
            topics=[AcknowledgedTopic(topic_id=each, partitions=results) for each, results in topics.items()],
            lock_timeout_ms=self._shares.settings_of(group_id).record_lock_duration_ms,
        )
