"""CreateTopics (19), DeleteTopics (20), CreatePartitions (37): an error and a message for each topic.

One topic's refusal never fails the others. A change answered without an error is durable: the metadata log was flushed,
and the directories exist. The checks are those of `broker.metadata.topics`; a topic that Apache Kafka 4.x would refuse
to open is created with a warning, as the message of a success, which only Barnabas' own clients are sent in Kafka's
protocol: others expect none. Partitions count in the client's quota of controller mutations; above it,
THROTTLING_QUOTA_EXCEEDED.

TOPIC_AUTHORIZATION_FAILED, after the checks of the request's form: CreateTopics needs CREATE on the cluster or the
topic, and shows counts and configs only with DESCRIBE_CONFIGS on the topic; CreatePartitions needs ALTER on the topic;
DeleteTopics needs DELETE on the cluster, or DESCRIBE and DELETE on the topic. Whether a topic exists shows only to
clients that may describe it, and the name of an id too.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

from barnabas.broker.config_entries import topic_entries
from barnabas.broker.handlers.authorization import denial, is_cluster_allowed
from barnabas.broker.handlers.turns import Turns, denied_in_turns
from barnabas.broker.metadata.own_topics import completed
from barnabas.broker.quotas.mutation import mutation_quota
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.resources import Operation, ResourceType
from barnabas.protocol.messages.topics.topics import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    TopicReference,
)
from barnabas.protocol.topic_name import CLUSTER_METADATA_TOPIC
from barnabas.protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.metadata.topic_quota import TakeQuota
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.metadata_changes import MetadataChanges
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe

R = TypeVar("R", CreatableTopicResult, DeletableTopicResult, CreatePartitionsTopicResult)


class CreateTopicsHandler:
    """Serves CreateTopics."""

    def __init__(self, changes: MetadataChanges, config: LiveConfig, probe: ApiProbe) -> None:
        self._changes = changes
        self._config = config
        self._probe = probe

    async def __call__(self, session: Session, request: CreateTopicsRequest) -> CreateTopicsResponse:
        """Answer one CreateTopics request as the module docstring specifies."""
        turns = Turns()
        api = ApiKey.CREATE_TOPICS
        names = _once(topic.name for topic in request.topics if topic.name != CLUSTER_METADATA_TOPIC)
        denied: frozenset[str] = frozenset()
        if not is_cluster_allowed(session, Operation.CREATE, api, log_denied=False):
            denied = await denied_in_turns(turns, session, Operation.CREATE, ResourceType.TOPIC, names, api)
        hidden = await denied_in_turns(
            turns, session, Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, names, api, log_denied=False
        )
        allowed = [topic for topic in request.topics if topic.name not in denied]
        created = iter(await self._changes.create_topics(request.replaced(topics=allowed), _quota(session, request)))
        results = {}
        turns = Turns()
        for asked in request.topics:
            if turns.is_over:
                await turns.next()
            if asked.name in denied:
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                results[asked.name] = CreatableTopicResult(name=asked.name, error=code, message="Authorization failed.")
                continue
            result = results[asked.name] = next(created)
            if result.error is not ErrorCode.NONE:
                continue
            if result.warning is not None and session.is_own:
                result.message = result.warning
            if asked.name in hidden:
                result.partitions = result.replication_factor = -1
                result.config_error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif request.describe:
                broker = self._config.broker
                configs = {name: value for name, value in completed(asked, broker).values.items() if value is not None}
                result.configs = [
                    CreatableTopicConfigs(
                        name=entry.name,
                        value=configs.get(entry.name, entry.value),  # as it was sent, other than in DescribeConfigs
                        read_only=entry.read_only,
                        source=entry.source_code,
                        sensitive=entry.sensitive,
                    )
                    for entry in sorted(topic_entries(broker, configs, with_docs=False), key=lambda entry: entry.name)
                ]
        return CreateTopicsResponse(topics=_counted(results.values(), self._probe))


class DeleteTopicsHandler:
    """Serves DeleteTopics."""

    def __init__(self, changes: MetadataChanges, store: MetadataView, config: LiveConfig, probe: ApiProbe) -> None:
        self._changes = changes
        self._store = store
        self._config = config
        self._probe = probe

    async def __call__(self, session: Session, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
        """Answer one DeleteTopics request as the module docstring specifies."""
        asked = request.topics
        refused = await self._refusals(session, asked)
        allowed = [reference for position, reference in enumerate(asked) if position not in refused]
        deleted = iter(await self._changes.delete_topics(allowed, _quota(session, request)))
        results = {
            (each.name, each.topic_id): refused[position] if position in refused else next(deleted)
            for position, each in enumerate(asked)
        }
        answered = _counted(results.values(), self._probe)
        for result in answered:
            result.error = request.known(result.error)
        return DeleteTopicsResponse(topics=answered)

    async def _refusals(self, session: Session, asked: Sequence[TopicReference]) -> dict[int, DeletableTopicResult]:
        """Return the results of topics that the client may not delete, by their positions in the request."""
        api = ApiKey.DELETE_TOPICS
        if not self._config.broker.get_bool("delete.topic.enable") or is_cluster_allowed(
            session, Operation.DELETE, api, log_denied=False
        ):
            return {}
        names_by_id = self._store.image.names
        times = Counter((each.name, each.topic_id) for each in asked)
        found: dict[int, tuple[TopicReference, str]] = {}
        for position, each in enumerate(asked):
            name = each.name if each.topic_id == ZERO_UUID else names_by_id.get(each.topic_id)
            is_ambiguous = each.name is not None and each.topic_id != ZERO_UUID
            if name is not None and not is_ambiguous and times[each.name, each.topic_id] == 1:
                found[position] = (each, name)
        names = [name for _, name in found.values()]
        turns = Turns()
        hidden = await denied_in_turns(turns, session, Operation.DESCRIBE, ResourceType.TOPIC, names, api)
        denied = await denied_in_turns(turns, session, Operation.DELETE, ResourceType.TOPIC, names, api)
        results = {}
        error = denial(ResourceType.TOPIC)
        for position, (each, name) in found.items():
            if each.topic_id != ZERO_UUID and name in denied:
                shown = None if name in hidden else name
                results[position] = DeletableTopicResult(
                    name=shown, topic_id=each.topic_id, error=error.code, message=error.message
                )
            elif each.topic_id == ZERO_UUID and (name in hidden or (name in denied and self._exists(name))):
                results[position] = DeletableTopicResult(name=name, error=error.code, message=error.message)
        return results

    def _exists(self, name: str) -> bool:
        return name in self._store.image.topics


class CreatePartitionsHandler:
    """Serves CreatePartitions."""

    def __init__(self, changes: MetadataChanges, probe: ApiProbe) -> None:
        self._changes = changes
        self._probe = probe

    async def __call__(self, session: Session, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
        """Answer one CreatePartitions request as the module docstring specifies."""
        names = _once(topic.name for topic in request.topics)
        api = ApiKey.CREATE_PARTITIONS
        denied = await denied_in_turns(Turns(), session, Operation.ALTER, ResourceType.TOPIC, names, api)
        allowed = [topic for topic in request.topics if topic.name not in denied]
        created = iter(
            await self._changes.create_partitions(request.replaced(topics=allowed), _quota(session, request))
        )
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        results = {
            topic.name: CreatePartitionsTopicResult(name=topic.name, error=code)
            if topic.name in denied
            else next(created)
            for topic in request.topics
        }
        return CreatePartitionsResponse(topics=_counted(results.values(), self._probe))


def _quota(session: Session, request: CreateTopicsRequest | DeleteTopicsRequest | CreatePartitionsRequest) -> TakeQuota:
    """Return what counts the request's partitions."""
    return mutation_quota(session, is_strict=request.is_quota_strict)


def _once(names: Iterable[str]) -> list[str]:
    """Return the names that occur once; the others are refused whatever the client may do."""
    return [name for name, times in Counter(names).items() if times == 1]


def _counted(results: Iterable[R], probe: ApiProbe) -> list[R]:
    counted = list(results)
    for topic in counted:
        if topic.error is not ErrorCode.NONE:
            probe.count_error(topic.error.name.lower())
    return counted
