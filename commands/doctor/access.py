"""Which operations the broker authorizes this client to perform, and the ACLs that are missing."""

from __future__ import annotations

from barnabas.clients.security.settings import Password, SecuritySettings
from barnabas.commands.doctor.report import Report
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.client_requests import AccessView, TopicAccess
from barnabas.protocol.messages.authorized_operations import OPERATIONS
from barnabas.protocol.messages.security.resources import Operation, ResourceType


def report_access(report: Report, view: AccessView | None, security: SecuritySettings) -> None:
    """Add the authorized operations to the report; a topic that the client can neither read nor write is a problem."""
    if view is None:
        return
    cluster = _names(ResourceType.CLUSTER, view.cluster)
    report.operations = {"cluster": cluster, "topics": {}}
    report.steps.append(f"operations on the cluster: {', '.join(cluster) or 'none'}")
    for topic in view.topics:
        _report_topic(report, topic, security)


def _report_topic(report: Report, topic: TopicAccess, security: SecuritySettings) -> None:
    if topic.error is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        report.operations["topics"][topic.name] = []
        report.add_problem(
            f"this client may not describe the topic {topic.name} (TOPIC_AUTHORIZATION_FAILED)."
            f"{_remedy(topic, security)}"
        )
        return
    if topic.error is not ErrorCode.NONE:
        report.add_problem(f"the topic {topic.name} cannot be used ({topic.error.name}).")
        return
    names = _names(ResourceType.TOPIC, topic.operations)
    report.operations["topics"][topic.name] = names
    report.steps.append(f"operations on the topic {topic.name}: {', '.join(names)}")
    if not {Operation.READ.name, Operation.WRITE.name} & set(names):
        report.add_problem(f"this client may neither read nor write the topic {topic.name}.{_remedy(topic, security)}")


def _remedy(topic: TopicAccess, security: SecuritySettings) -> str:
    user = "NAME"
    if isinstance(security.login, Password) and not security.login.is_token:
        user = security.login.user
    return (
        f" Add an ACL: barnabas acl add --principal User:{user} --topic {topic.name} --operation read (or write);"
        " `barnabas acl explain` shows which rule decides."
    )


def _names(resource: ResourceType, bits: int) -> list[str]:
    return [operation.name for operation in OPERATIONS[resource] if bits >= 0 and bits >> operation & 1]
