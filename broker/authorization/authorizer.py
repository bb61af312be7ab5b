"""Authorizer: decides by the ACLs of the metadata image, and gives each session its access.

When an image with other ACLs is applied, a thread prepares the index of them and the event loop replaces it, before the
change is answered, so a client that has created an ACL meets it with its next request.

Properties: super.users, allow.everyone.if.no.acl.found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from barnabas.broker.authorization.cached_access import CachedAccess
from barnabas.broker.authorization.decisions import DEFAULT_ALLOW, DEFAULT_DENY, decide
from barnabas.broker.authorization.index import AclIndex

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from barnabas.broker.authorization.audit import AuditLog
    from barnabas.broker.authorization.rules import Action, Decision
    from barnabas.broker.network.session import Session
    from barnabas.protocol.messages.api_key import ApiKey
    from barnabas.protocol.messages.security.acls import Acl

STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
"""The only value of authorizer.class.name that switches authorization on."""


REMEMBERED_MAX: Final = 500_000
"""Decisions that all accesses together remember: a client without permissions can have many addresses, and name much.
"""


@dataclass(frozen=True, slots=True)
class PreparedAcls:
    """ACLs by id, which never change, and their index."""

    acls: Mapping[bytes, Acl]
    index: AclIndex


class Authorizer:
    """Decides about actions. Event loop only, but for `prepare`."""

    def __init__(
        self,
        *,
        super_users: Iterable[str] = (),
        allow_if_no_acl: bool = False,
        audit: AuditLog | None = None,
    ) -> None:
        """There are no ACLs until `replace` is called. `super_users` are texts of principals: `User:admin`."""
        self._acls: Mapping[bytes, Acl] = {}
        self.index = AclIndex()
        self.super_users = frozenset(super_users)
        self.default = DEFAULT_ALLOW if allow_if_no_acl else DEFAULT_DENY
        self._audit = audit
        self._accesses: WeakValueDictionary[tuple[str, str], CachedAccess] = WeakValueDictionary()
        self._remembered = 0
        """Decisions remembered since they were last counted."""

    @property
    def audits_grants(self) -> bool:
        """Whether grants are audited as well as denials."""
        return self._audit is not None and self._audit.grants

    def decide(self, action: Action) -> Decision:
        """Decide about an action without a cache."""
        return decide(self.index, action, super_users=self.super_users, default=self.default)

    def admits_audit_line(self, principal: str) -> bool:
        """Return whether the audit log takes one more line of a principal now; a line beyond its share is counted."""
        return self._audit is not None and self._audit.admit(principal)

    def audit(self, action: Action, decision: Decision, api: ApiKey | None) -> None:
        """Write a decision to the audit log, after `admits_audit_line` has returned True for it."""
        if self._audit is not None:
            self._audit.record(action, decision, api)

    def close(self) -> None:
        """Write what is left of the audit log. Blocks."""
        if self._audit is not None:
            self._audit.close()

    def bind(self, session: Session) -> None:
        """Set the session's access by its principal and host: when it connects, and when it has authenticated."""
        session.access = self.access_for(str(session.principal), session.host)

    def access_for(self, principal: str, host: str) -> CachedAccess:
        """Return the access of a principal at a host; sessions of both share it."""
        key = (principal, host)
        access = self._accesses.get(key)
        if access is None:
            access = self._accesses[key] = CachedAccess(self, principal, host)
        return access

    def note_remembered(self) -> None:
        """Count one more decision, which is remembered next; forget the others if they are too many."""
        self._remembered += 1
        if self._remembered <= REMEMBERED_MAX:
            return
        accesses = list(self._accesses.values())  # some of those that were counted have ended with their sessions
        self._remembered = sum(access.remembered for access in accesses) + 1
        if self._remembered > REMEMBERED_MAX // 2:
            for access in accesses:
                access.clear()
            self._remembered = 1

    def prepare(self, acls: Mapping[bytes, Acl]) -> PreparedAcls:
        """Return what `replace` needs for these ACLs, by id. For any thread, while nothing else replaces them."""
        old = self._acls
        added = [acl for identity, acl in acls.items() if old.get(identity) != acl]
        removed = {acl for identity, acl in old.items() if acls.get(identity) != acl}
        if removed:
            removed.difference_update(acls.values())  # an equal ACL under another id stays
        return PreparedAcls(acls, self.index.with_changes(added, removed) if added or removed else self.index)

    def replace(self, prepared: PreparedAcls) -> None:
        """Decide by these ACLs from now on."""
        self._acls = prepared.acls
        if prepared.index is self.index:
            return
        self.index = prepared.index
        self._remembered = 0
        for access in list(self._accesses.values()):
            access.forget()
