"""CachedAccess: the decisions about one principal at one host, remembered until the ACLs change.

It implements `broker.security.access.SessionAccess`. Event loop only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.authorization.decisions import allowed_operations, decide_any
from barnabas.broker.authorization.rules import Action, Decision
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.authorized_operations import OPERATIONS
from barnabas.protocol.messages.security.resources import Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.authorization.authorizer import Authorizer

NAMES_MAX: Final = 10_000
"""Remembered names per operation. Further names are decided at each use, so that a client cannot fill the memory.

The memory is not emptied when it is full: a request with more names than this would decide about all of them again.
"""

NAME_CHARACTERS_MAX: Final = 256
"""Longer names are decided at each use: a request may contain names of megabytes, but those of topics have at most 249.
"""


class _Client:
    """One principal at one host, before the authorizer. Apart from CachedAccess, so that no object refers to itself."""

    __slots__ = ("audits_grants", "authorizer", "host", "principal")

    def __init__(self, authorizer: Authorizer, principal: str, host: str) -> None:
        self.authorizer = authorizer
        self.principal = principal
        self.host = host
        self.audits_grants = authorizer.audits_grants

    def decide(self, operation: Operation, resource: ResourceType, name: str) -> Decision:
        return self.authorizer.decide(Action(self.principal, self.host, operation, resource, name))

    def audit(
        self, decision: Decision, operation: Operation, resource: ResourceType, name: str, api: ApiKey | None
    ) -> None:
        self.authorizer.audit(Action(self.principal, self.host, operation, resource, name), decision, api)


class _Decisions(dict[str, bool]):
    """Decisions about one operation on resources of one type, by name. A plain look-up once a name is known."""

    __slots__ = ("_api", "_client", "_operation", "_resource")

    def __init__(
        self, client: _Client, operation: Operation, resource: ResourceType, api: ApiKey | None = None
    ) -> None:
        """`api` is audited with grants; None: the caller audits them."""
        self._client = client
        self._operation = operation
        self._resource = resource
        self._api = api

    def __missing__(self, name: str) -> bool:
        decision = self.decide(name)
        client = self._client
        is_audited = client.audits_grants and decision.allowed and self._api is not None
        if is_audited and client.authorizer.admits_audit_line(client.principal):
            client.audit(decision, self._operation, self._resource, name, self._api)
        return decision.allowed

    def decide(self, name: str) -> Decision:
        """Decide about a name that is not remembered. With grants in the audit log nothing is: each use is a line."""
        decision = self._client.decide(self._operation, self._resource, name)
        if len(self) < NAMES_MAX and len(name) <= NAME_CHARACTERS_MAX and not self._client.audits_grants:
            self._client.authorizer.note_remembered()
            self[name] = decision.allowed
        return decision


class CachedAccess:
    """What one principal may do from one host."""

    __slots__ = (
        "__weakref__",
        "_bits",
        "_client",
        "_others",
        "describe_topic",
        "generation",
        "read_group",
        "read_topic",
        "write_topic",
        "write_transaction",
    )

    def __init__(self, authorizer: Authorizer, principal: str, host: str) -> None:
        client = self._client = _Client(authorizer, principal, host)
        self.generation = 0
        topic = ResourceType.TOPIC
        self.write_topic = _Decisions(client, Operation.WRITE, topic, ApiKey.PRODUCE)
        self.read_topic = _Decisions(client, Operation.READ, topic, ApiKey.FETCH)
        self.describe_topic = _Decisions(client, Operation.DESCRIBE, topic, ApiKey.METADATA)
        self.read_group = _Decisions(client, Operation.READ, ResourceType.GROUP, ApiKey.HEARTBEAT)
        self.write_transaction = _Decisions(client, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, ApiKey.PRODUCE)
        self._others: dict[tuple[Operation, ResourceType], _Decisions] = {}
        self._bits: dict[tuple[ResourceType, str], int] = {}

    def allows(
        self,
        operation: Operation,
        resource: ResourceType,
        name: str,
        *,
        api: ApiKey | None = None,
        log_denied: bool = True,
    ) -> bool:
        """Return whether the operation on the named resource is allowed; a denial is audited as one of `api`."""
        key = (operation, resource)
        decisions = self._others.get(key)
        if decisions is None:
            decisions = self._others[key] = _Decisions(self._client, operation, resource)
        decision = None
        allowed = decisions.get(name)
        if allowed is None:
            decision = decisions.decide(name)
            allowed = decision.allowed
        client = self._client
        # The rule of a remembered decision is only found for a line that is written: a request may have 50,000 names.
        if (client.audits_grants if allowed else log_denied) and client.authorizer.admits_audit_line(client.principal):
            client.audit(decision or client.decide(operation, resource, name), operation, resource, name, api)
        return allowed

    def allows_any(self, operation: Operation, resource: ResourceType) -> bool:
        """Return whether the operation is allowed on at least one resource of the type (authorizeByResourceType)."""
        client = self._client
        authorizer = client.authorizer
        return decide_any(
            authorizer.index,
            Action(client.principal, client.host, operation, resource, ""),
            super_users=authorizer.super_users,
            default=authorizer.default,
        )

    def operations(self, resource: ResourceType, name: str) -> int:
        """Return the allowed operations as the bit field of authorized-operations fields. Not audited, as in Kafka."""
        key = (resource, name)
        bits = self._bits.get(key)
        if bits is None:
            client = self._client
            authorizer = client.authorizer
            bits = allowed_operations(
                authorizer.index,
                Action(client.principal, client.host, Operation.ANY, resource, name),
                OPERATIONS[resource],
                super_users=authorizer.super_users,
                default=authorizer.default,
            )
            if len(self._bits) < NAMES_MAX and len(name) <= NAME_CHARACTERS_MAX:
                authorizer.note_remembered()
                self._bits[key] = bits
        return bits

    @property
    def remembered(self) -> int:
        """Number of remembered decisions."""
        return sum(map(len, self._all()))

    def forget(self) -> None:
        """Drop every remembered decision, because the ACLs have changed."""
        self.generation += 1
        self.clear()

    def clear(self) -> None:
        """Drop every remembered decision to release its memory."""
        for decisions in self._all():
            decisions.clear()

    def _all(self) -> list[dict[str, bool] | dict[tuple[ResourceType, str], int]]:
        return [
            self.write_topic,
            self.read_topic,
            self.describe_topic,
            self.read_group,
            self.write_transaction,
            *self._others.values(),
            self._bits,
        ]
