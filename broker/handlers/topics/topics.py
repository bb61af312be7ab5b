"""CreateTopics (19), DeleteTopics (20), CreatePartitions (37): an error and a message for each topic.

One topic's refusal never fails the others. A change answered without an error is durable: the metadata log was flushed,
and the directories exist. The checks are those of `broker.metadata.topics`; a topic that Apache Kafka 4.x
would refuse to open is created with a warning as its message. Partitions count in the client's quota of controller
mutations; above it, THROTTLING_QUOTA_EXCEEDED.

TOPIC_AUTHORIZATION_FAILED, after the checks of the request's form: CreateTopics needs CREATE on the cluster or the
topic, and shows counts and configs only with DESCRIBE_CONFIGS on the topic; CreatePartitions needs ALTER on the topic;
DeleteTopics needs DELETE on the cluster, or DESCRIBE and DELETE on the topic. Whether a topic exists shows only to
clients that may describe it, and the name of an id too.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from barnabas.broker.config_entries import topic_entries
from barnabas.broker.handlers.authorization import denial, is_cluster_allowed
from barnabas.broker.handlers.turns import Turns, denied_in_turns
from barnabas.broker.metadata.own_topics import completed
from barnabas.broker.quotas.mutation import mutation_quota
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.resources import Operation, ResourceType
from barnabas.protocol.messages.topics.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    TopicReference,
    TopicResult,
    TopicsResponse,
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


class CreateTopicsHandler:
    """Serves CreateTopics."""

    def __init__(self, changes: MetadataChanges, config: LiveConfig, probe: ApiProbe) -> None:
        self._changes = changes
        self._config = config
        self._probe = probe

    async def __call__(self, session: Session, request: CreateTopicsRequest) -> TopicsResponse:
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
        response = await self._changes.create_topics(replace(request, topics=allowed), _quota(session, request))
        created = iter(response.topics)
        results = []
        turns = Turns()
        for asked in request.topics:
            if turns.is_over:
                await turns.next()
            if asked.name in denied:
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                results.append(TopicResult(asked.name, code, "Authorization failed."))
                continue
            result = next(created)
            results.append(result)
            if result.error is not ErrorCode.NONE:
                continue
            if asked.name in hidden:
                result.partitions = result.replication_factor = -1
                result.config_error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif request.describe:
                broker = self._config.broker
                configs = {name: value for name, value in completed(asked, broker).configs.items() if value is not None}
                result.configs = topic_entries(broker, configs, with_docs=False)
                for entry in result.configs:  # as they were sent, other than in DescribeConfigs
                    entry.value = configs.get(entry.name, entry.value)
        return _counted(TopicsResponse(results), self._probe)


class DeleteTopicsHandler:
    """Serves DeleteTopics."""

    def __init__(self, changes: MetadataChanges, store: MetadataView, config: LiveConfig, probe: ApiProbe) -> None:
        self._changes = changes
        self._store = store
        self._config = config
        self._probe = probe

    async def __call__(self, session: Session, request: DeleteTopicsRequest) -> TopicsResponse:
        """Answer one DeleteTopics request as the module docstring specifies."""
        asked = [*(TopicReference(name) for name in request.names), *request.references]
        refused = await self._refusals(session, asked)
        allowed = [reference for position, reference in enumerate(asked) if position not in refused]
        kept = replace(request, names=[], references=allowed)
        deleted = iter((await self._changes.delete_topics(kept, _quota(session, request))).topics)
        results = [refused[position] if position in refused else next(deleted) for position in range(len(asked))]
        return _counted(TopicsResponse(results), self._probe)

    async def _refusals(self, session: Session, asked: Sequence[TopicReference]) -> dict[int, TopicResult]:
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
                results[position] = TopicResult(shown, error.code, error.message, each.topic_id)
            elif each.topic_id == ZERO_UUID and (name in hidden or (name in denied and self._exists(name))):
                results[position] = TopicResult(name, error.code, error.message)
        return results

    def _exists(self, name: str) -> bool:
        return name in self._store.image.topics


class CreatePartitionsHandler:
    """Serves CreatePartitions."""

    def __init__(self, changes: MetadataChanges, probe: ApiProbe) -> None:
        self._changes = changes
        self._probe = probe

    async def __call__(self, session: Session, request: CreatePartitionsRequest) -> TopicsResponse:
        """Answer one CreatePartitions request as the module docstring specifies."""
        names = _once(topic.name for topic in request.topics)
        api = ApiKey.CREATE_PARTITIONS
        denied = await denied_in_turns(Turns(), session, Operation.ALTER, ResourceType.TOPIC, names, api)
        allowed = [topic for topic in request.topics if topic.name not in denied]
        created = iter(
            (await self._changes.create_partitions(replace(request, topics=allowed), _quota(session, request))).topics
        )
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        results = [TopicResult(topic.name, code) if topic.name in denied else next(created) for topic in request.topics]
        return _counted(TopicsResponse(results), self._probe)


def _quota(session: Session, request: CreateTopicsRequest | DeleteTopicsRequest | CreatePartitionsRequest) -> TakeQuota:
    """Return what counts the request's partitions."""
    return mutation_quota(session, is_strict=request.is_quota_strict)


def _once(names: Iterable[str]) -> list[str]:
    """Return the names that occur once; the others are refused whatever the client may do."""
    return [name for name, times in Counter(names).items() if times == 1]


def _counted(response: TopicsResponse, probe: ApiProbe) -> TopicsResponse:
    for topic in response.topics:
        if topic.error is not ErrorCode.NONE:
            probe.count_error(topic.error.name.lower())
    return response
