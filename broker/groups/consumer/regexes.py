"""The expressions with which members of a consumer group subscribe, and the topics that they match.

An expression is resolved when the first member sends it, so that this member's first assignment has its topics, and
again at the group's first heartbeat after a topic was created. The matching topics are a record of the group, so that
the group reads the same topics after a restart. Kafka resolves in the background, and the topics come with a later
heartbeat. Internal topics match like others, as in Kafka. With an authorizer only topics match that the client may
DESCRIBE whose request resolves the expression, as in Kafka; changed ACLs count from the next resolution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.groups.consumer.records import regex_record
from barnabas.protocol.errors import BrokerError
from barnabas.protocol.groups.consumer_group_values import ConsumerGroupRegularExpressionValue
from barnabas.protocol.messages.security.resources import Operation, ResourceType

_DESCRIBE: Final = Operation.DESCRIBE
_TOPIC: Final = ResourceType.TOPIC

if TYPE_CHECKING:
    from collections.abc import Mapping

    from barnabas.broker.groups.consumer.change import GroupChange
    from barnabas.broker.groups.consumer.member import ConsumerGroupMember


def update_regexes(
    change: GroupChange,
    members: Mapping[str, ConsumerGroupMember],
    before: ConsumerGroupMember,
    after: ConsumerGroupMember,
) -> bool:
    """Resolve the expressions of `members`; return whether a subscription changed.

    Raises BrokerError INVALID_REGULAR_EXPRESSION for a new expression of the member `after`.
    """
    group = change.group
    needed = {member.topic_regex for member in members.values() if member.topic_regex}
    if not needed and not group.regexes:
        return before.topic_regex != after.topic_regex
    regexes = {regex: value for regex, value in group.regexes.items() if regex in needed}
    for regex in sorted(group.regexes.keys() - needed):
        change.records.append(regex_record(group.group_id, regex, None))
    has_changed = before.topic_regex != after.topic_regex
    for regex in sorted(needed if not group.is_resolved else needed - regexes.keys()):
        known = regexes.get(regex)
        try:
            topics = _matching(change, regex)
        except BrokerError:
            if regex == after.topic_regex and known is None:
                raise
            continue  # a Kafka with another syntax accepted it: the group keeps the topics of its record
        if known is None or tuple(known.topics) != topics:
            value = ConsumerGroupRegularExpressionValue(
                topics, change.image.end_offset - 1, change.context.clock.wall_ms()
            )
            regexes[regex] = value
            change.records.append(regex_record(group.group_id, regex, value))
            has_changed = True
    change.regexes = regexes
    return has_changed


def _matching(change: GroupChange, regex: str) -> tuple[str, ...]:
    from barnabas.broker.groups.expressions.topic_regex import topic_regex  # most brokers never see an expression

    matches = topic_regex(regex).matches
    access = change.access
    return tuple(
        sorted(
            name
            for name in change.image.topics
            if matches(name) and (access is None or access.allows(_DESCRIBE, _TOPIC, name, log_denied=False))
        )
    )
