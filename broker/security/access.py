"""What a session asks of the authorizer. `Session.access` is None on a broker without one: everything is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.resources import Operation, ResourceType


class SessionAccess(Protocol):
    """The decisions about one principal at one host; shared by its sessions, and current at every moment.

    The mappings decide about the names that hot paths ask for, and remember the answers: `access.write_topic[name]`.
    """

    @property
    def generation(self) -> int:
        """Number of changes of the decisions so far."""
        ...

    @property
    def write_topic(self) -> Mapping[str, bool]:
        """WRITE by topic name."""
        ...

    @property
    def read_topic(self) -> Mapping[str, bool]:
        """READ by topic name."""
        ...

    @property
    def describe_topic(self) -> Mapping[str, bool]:
        """DESCRIBE by topic name."""
        ...

    @property
    def read_group(self) -> Mapping[str, bool]:
        """READ by group id."""
        ...

    @property
    def write_transaction(self) -> Mapping[str, bool]:
        """WRITE by transactional id."""
        ...

    def allows(
        self,
        operation: Operation,
        resource: ResourceType,
        name: str,
        *,
        api: ApiKey | None = None,
        log_denied: bool = True,
    ) -> bool:
        """Whether the operation on the named resource is allowed; a denial is logged for the audit of `api`."""
        ...

    def allows_any(self, operation: Operation, resource: ResourceType) -> bool:
        """Whether the operation is allowed on at least one resource of the type (authorizeByResourceType)."""
        ...

    def operations(self, resource: ResourceType, name: str) -> int:
        """Return the allowed operations as the bit field of authorized-operations fields."""
        ...
