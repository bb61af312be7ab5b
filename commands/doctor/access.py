"""Which operations the broker authorizes this client to perform, and the ACLs that are missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.clients.security.settings import Password, SecuritySettings
from barnabas.commands.doctor.report import Report
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.authorized_operations import OPERATIONS
from barnabas.protocol.messages.groups.describe_groups import DescribedGroup
from barnabas.protocol.messages.security.resources import Operation, ResourceType
from barnabas.protocol.messages.topics.metadata import MetadataResponse, TopicMetadata

_OF_ANOTHER_BROKER = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})


class Resources(NamedTuple):
    """Names of the topics and groups that the client uses."""

    topics: Sequence[str] = ()
    groups: Sequence[str] = ()


def report_access(report: Report, found: MetadataResponse | None, security: SecuritySettings) -> None:
    """Add the authorized operations to the report; a topic that the client can neither read nor write is a problem."""
    if found is None:
        return
    cluster = _names(ResourceType.CLUSTER, found.authorized_operations)
    report.operations = {"cluster": cluster, "topics": {}}
    report.steps.append(f"operations on the cluster: {', '.join(cluster) or 'none'}")
    for topic in found.topics:
        _report_topic(report, topic, security)


def _report_topic(report: Report, topic: TopicMetadata, security: SecuritySettings) -> None:
    name = topic.topic_name
    remedy = _remedy(f"--topic {name} --operation read (or write)", security)
    if topic.error is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        report.operations["topics"][name] = []
        report.add_problem(f"this client may not describe the topic {name} (TOPIC_AUTHORIZATION_FAILED).{remedy}")
        return
    if topic.error is not ErrorCode.NONE:
        report.add_problem(f"the topic {name} cannot be used ({topic.error.name}).")
        return
    operations = _names(ResourceType.TOPIC, topic.authorized_operations)
    report.operations["topics"][name] = operations
    report.steps.append(f"operations on the topic {name}: {', '.join(operations)}")
    if not {Operation.READ.name, Operation.WRITE.name} & set(operations):
        report.add_problem(f"this client may neither read nor write the topic {name}.{remedy}")


def report_group_access(report: Report, groups: Iterable[DescribedGroup], security: SecuritySettings) -> None:
    """Add the authorized operations on groups to the report; a group that the client cannot join is a problem."""
    for group in groups:
        _report_group(report, group, security)


def _report_group(report: Report, group: DescribedGroup, security: SecuritySettings) -> None:
    name = group.group_id
    if group.error in _OF_ANOTHER_BROKER:
        report.steps.append(f"group {name}: another broker coordinates it, and was not asked for its operations")
        return
    found = report.operations.setdefault("groups", {})
    remedy = _remedy(f"--group {name} --operation read", security)
    if group.error is ErrorCode.GROUP_AUTHORIZATION_FAILED:
        found[name] = []
        report.add_problem(f"this client may not describe the group {name} (GROUP_AUTHORIZATION_FAILED).{remedy}")
        return
    if group.error is not ErrorCode.NONE:
        report.add_problem(f"the group {name} cannot be used ({group.error.name}).")
        return
    operations = found[name] = _names(ResourceType.GROUP, group.authorized_operations)
    report.steps.append(f"operations on the group {name}: {', '.join(operations)}")
    if Operation.READ.name not in operations:
        report.add_problem(f"this client may not join the group {name} or commit its offsets.{remedy}")


def _remedy(resource: str, security: SecuritySettings) -> str:
    user = "NAME"
    if isinstance(security.login, Password) and not security.login.is_token:
        user = security.login.user
    return (
        f" Add an ACL: barnabas acl add --principal User:{user} {resource};"
        " `barnabas acl explain` shows which rule decides."
    )


def _names(resource: ResourceType, bits: int) -> list[str]:
    return [operation.name for operation in OPERATIONS[resource] if bits >= 0 and bits >> operation & 1]
