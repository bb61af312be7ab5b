"""Mirrors (10000): create, alter, promote, delete and describe mirrors.

Describing needs DESCRIBE on the cluster, every change ALTER (CLUSTER_AUTHORIZATION_FAILED for the whole request).
INVALID_REQUEST: an unknown action, a wrong definition, or not exactly one name for a change; RESOURCE_NOT_FOUND: an
unknown mirror; DUPLICATE_RESOURCE: a mirror that exists; POLICY_VIOLATION: a mirror is deleted while its topics are
read-only.

A change is durable when it is answered; the mirror follows it in the background, and so does a promotion, which goes on
after a restart: its topics are `promoting`, then `promoted`. Promoting again has no effect. Definitions contain no
passwords.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.handlers.authorization import ensure_cluster_allowed
from barnabas.broker.metadata.mirrors.definitions import (
    plan_alter_mirror,
    plan_create_mirror,
    plan_delete_mirror,
    unknown_mirror,
)
from barnabas.broker.metadata.mirrors.promotion import plan_begin_promotion
from barnabas.broker.mirrors.status import MirrorState, MirrorStatus, PartitionCopyState, PartitionStatus
from barnabas.protocol.errors import BrokerError, DecodeError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.mirrors import (
    MirrorAction,
    MirrorDescription,
    MirroredPartition,
    MirroredTopic,
    MirrorProblem,
    MirrorsRequest,
    MirrorsResponse,
    PromotedPartition,
    definition_fields,
)
from barnabas.protocol.messages.security.resources import Operation
from barnabas.protocol.mirrors.definition import DesiredState, MirrorDefinition
from barnabas.protocol.mirrors.fields import (
    DEFINITION_PREFIX,
    MirrorFormatError,
    ensure_known,
    text_field,
    texts_field,
)
from barnabas.protocol.mirrors.promotion import Undecided
from barnabas.protocol.mirrors.topic import TopicMirror, TopicMirrorState
from barnabas.protocol.uuids import uuid_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.metadata_changes import MetadataChanges
    from barnabas.broker.mirrors.status import MirrorStatuses
    from barnabas.broker.network.session import Session
    from barnabas.broker.partitions.registry import PartitionRegistry
    from barnabas.broker.probes import ApiProbe

_UNSTARTED: Final = {
    DesiredState.RUNNING: (MirrorState.STARTING, PartitionCopyState.WAITING),
    DesiredState.PAUSED: (MirrorState.PAUSED, PartitionCopyState.PAUSED),
    DesiredState.PROMOTED: (MirrorState.PROMOTED, PartitionCopyState.PROMOTED),
}
"""States of a mirror without a status, and of its partitions."""


class MirrorsHandler:
    """Serves the API of mirrors."""

    def __init__(
        self,
        store: MetadataView,
        changes: MetadataChanges,
        partitions: PartitionRegistry,
        mirrors: MirrorStatuses,
        probe: ApiProbe,
    ) -> None:
        self._store = store
        self._changes = changes
        self._partitions = partitions
        self._mirrors = mirrors
        self._probe = probe

    async def __call__(self, session: Session, request: MirrorsRequest) -> MirrorsResponse:
        """Answer one request as the module docstring specifies."""
        try:
            if request.action == MirrorAction.DESCRIBE:
                ensure_cluster_allowed(session, Operation.DESCRIBE, ApiKey.MIRRORS)
                return MirrorsResponse(mirrors=self._describe(request.names))
            ensure_cluster_allowed(session, Operation.ALTER, ApiKey.MIRRORS)
            if request.action not in [each.value for each in MirrorAction]:
                raise BrokerError(
                    ErrorCode.INVALID_REQUEST, f"action={request.action!r} is not one of {', '.join(MirrorAction)}"
                )
            if len(request.names) != 1:
                raise BrokerError(ErrorCode.INVALID_REQUEST, f"{request.action} needs the name of one mirror")
            return await self._change(request, request.names[0])
        except BrokerError as error:
            self._probe.count_error(error.code.name.lower())
            return request.refused(error.code, error.message)

    async def _change(self, request: MirrorsRequest, name: str) -> MirrorsResponse:
        if request.action == MirrorAction.DELETE:
            released = await self._changes.change(
                lambda image: plan_delete_mirror(image, name, releases_topics=request.releases_topics)
            )
            return MirrorsResponse(released=released)
        try:
            fields = request.fields
        except DecodeError as error:
            raise BrokerError(ErrorCode.INVALID_REQUEST, str(error)) from error
        if request.action == MirrorAction.CREATE:
            await self._changes.change(
                lambda image: plan_create_mirror(
                    image, name, fields, node_id=self._store.node_id, cluster_id=self._store.cluster_id
                )
            )
        elif request.action == MirrorAction.PROMOTE:
            topics, undecided = _promotion(fields)
            await self._changes.change(lambda image: plan_begin_promotion(image, name, topics, undecided))
        else:
            await self._changes.change(lambda image: plan_alter_mirror(image, name, fields))
        return MirrorsResponse(mirrors=self._describe([name]))

    def _describe(self, names: Sequence[str]) -> list[MirrorDescription]:
        image, statuses = self._store.image, self._mirrors.statuses()
        defined = sorted(
            key.removeprefix(DEFINITION_PREFIX) for key in image.mirrors.texts if key.startswith(DEFINITION_PREFIX)
        )
        for name in names:
            if name not in defined:
                raise unknown_mirror(name)
        return [self._description(image, name, statuses.get(name)) for name in names or defined]

    def _description(self, image: MetadataImage, name: str, status: MirrorStatus | None) -> MirrorDescription:
        topics = image.mirrors.topics_of(name)
        described = [
            MirroredTopic(topic, each.state, None if each.source_id is None else uuid_text(each.source_id))
            for topic, each in sorted(topics.items())
        ]
        definition = image.mirrors.definitions.get(name)
        if definition is None:
            reason = f"the definition cannot be read: {image.mirrors.unreadable[DEFINITION_PREFIX + name]}"
            return MirrorDescription(name=name, state=MirrorState.FAILED, error=reason, topics=described)
        if status is None:
            status = MirrorStatus(name, _UNSTARTED[definition.desired][0])
        known = {(each.topic, each.partition): each for each in status.partitions}
        for missing in self._unstarted(image, definition, topics):
            known.setdefault((missing.topic, missing.partition), missing)
        return MirrorDescription(
            name=name,
            definition=definition_fields(definition.fields()),
            state=status.state,
            error=status.error,
            topics=described,
            partitions=[_partition(known[key]) for key in sorted(known)],
            problems=[MirrorProblem(each.topic, each.reason) for each in status.problems],
            promoted=[each for topic, mirrored in sorted(topics.items()) for each in _promoted(topic, mirrored)],
        )

    def _unstarted(
        self, image: MetadataImage, definition: MirrorDefinition, topics: dict[str, TopicMirror]
    ) -> list[PartitionStatus]:
        """Return the partitions of the mirror's existing topics, as they are without a running copy."""
        found = []
        for topic, mirrored in topics.items():
            if image.mirror_of(topic) != mirrored:
                continue
            state = _UNSTARTED[definition.desired][1]
            if mirrored.state in (TopicMirrorState.FAILED, TopicMirrorState.DELETED_AT_SOURCE):
                state = PartitionCopyState.FAILED
            elif mirrored.state is TopicMirrorState.PROMOTED:
                state = PartitionCopyState.PROMOTED
            for number in image.topics[topic].partitions:
                partition = self._partitions.get(topic, number)
                end = -1 if partition is None else partition.log.log_end_offset
                found.append(PartitionStatus(topic, number, state, end))
        return found


def _promotion(fields: Mapping[str, Any]) -> tuple[tuple[str, ...], Undecided]:
    """Return the patterns of topics, and what happens to undecided transactions. Raises BrokerError."""
    try:
        ensure_known(fields, ("topics", "undecided"))
        topics = texts_field(fields, "topics")
        undecided = text_field({"undecided": Undecided.CUT.value, **fields}, "undecided")
    except MirrorFormatError as error:
        raise BrokerError(ErrorCode.INVALID_REQUEST, str(error)) from error
    if undecided not in [each.value for each in Undecided]:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"undecided is not one of {', '.join(Undecided)}")
    return topics, Undecided(undecided)


def _promoted(topic: str, mirrored: TopicMirror) -> list[PromotedPartition]:
    """Return the partitions of a topic that is promoted, none before that."""
    promotion = mirrored.promoted
    if promotion is None or mirrored.state is not TopicMirrorState.PROMOTED:
        return []
    return [
        PromotedPartition(
            topic,
            number,
            row.copied_end,
            row.source_epoch,
            row.end,
            promotion.leader_epoch,
            row.committed,
            row.aborted,
            row.cut,
        )
        for number, row in sorted(promotion.partitions.items())
    ]


def _partition(status: PartitionStatus) -> MirroredPartition:
    return MirroredPartition(
        status.topic,
        status.partition,
        status.state,
        status.offset,
        status.source_offset,
        status.lag_records,
        status.lag_seconds,
        status.error,
        status.lag_bytes,
    )
