"""AuditLog: denials, and grants on request, as JSON lines.

    {"time": "2026-01-02T03:04:05.678Z", "result": "denied", "principal": "User:alice", "host": "10.0.0.7",
     "api": "produce", "operation": "WRITE", "resource": "TOPIC", "name": "orders", "rule": "DefaultDeny"}

`rule` is SuperUser, DefaultAllow, DefaultDeny or MatchingAcl; with MatchingAcl, `acl` has the deciding ACL. Lines
beyond the limits per second (`audit_shares`) are counted, and the next second begins with a line
{"result": "suppressed", "principal": "User:alice", "count": n} for each of the principals with the most, and one
without a principal for the others. Without a file the lines go to the logger `barnabas.audit`, level INFO.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Protocol

from barnabas.broker.authorization.audit_shares import OTHERS, AuditShares
from barnabas.broker.authorization.rules import Action, Decision
from barnabas.broker.printable import MAX_CHARACTERS
from barnabas.protocol.messages.security.resources import Operation, PatternType, Permission, ResourceType

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.protocol.messages.api_key import ApiKey
    from barnabas.protocol.messages.security.acls import Acl

AUDIT_LOGGER: Final = "barnabas.audit"


class AuditSink(Protocol):
    """Where lines go."""

    def write(self, line: str) -> None:
        """Take one line, without its end. Does not block and does not raise."""
        ...

    def close(self) -> None:
        """Write what is left."""
        ...


class LoggerSink:
    """Lines as log messages."""

    def __init__(self) -> None:
        self._logger = logging.getLogger(AUDIT_LOGGER)

    def write(self, line: str) -> None:
        """Log one line."""
        self._logger.info("%s", line)

    def close(self) -> None:
        """Do nothing: the logger has no buffer."""


class AuditLog:
    """Writes decisions to a sink, at most `max_per_second`. `grants`: whether grants are written as well."""

    def __init__(self, sink: AuditSink, *, grants: bool, max_per_second: int, wall_ms: Callable[[], int]) -> None:
        self.grants = grants
        self._sink = sink
        self._shares = AuditShares(max_per_second)
        self._wall_ms = wall_ms
        self._second = 0

    def admit(self, principal: str) -> bool:
        """Return whether a principal may write one more line in this second; if not, it is counted as suppressed."""
        now_ms = self._wall_ms()
        second = now_ms // 1000
        if second != self._second:
            self._end_second(now_ms, is_next=second == self._second + 1)
            self._second = second
        return self._shares.admit(principal)

    def record(self, action: Action, decision: Decision, api: ApiKey | None) -> None:
        """Write one decision that `admit` has returned True for."""
        self._sink.write(json.dumps(_entry(self._wall_ms(), action, decision, api)))

    def close(self) -> None:
        """Write the count of suppressed lines, and close the sink."""
        self._end_second(self._wall_ms(), is_next=False)
        self._sink.close()

    def _end_second(self, now_ms: int, *, is_next: bool) -> None:
        for principal, count in self._shares.end_second(is_next=is_next):
            named = {} if principal == OTHERS else {"principal": _cut(principal)}
            self._sink.write(json.dumps({"time": _time(now_ms), "result": "suppressed", **named, "count": count}))


def _entry(now_ms: int, action: Action, decision: Decision, api: ApiKey | None) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "time": _time(now_ms),
        "result": "allowed" if decision.allowed else "denied",
        "principal": _cut(action.principal),
        "host": action.host,
        "api": None if api is None else api.label,
        "operation": action.operation.name,
        "resource": action.resource.name,
        "name": _cut(action.name),
        "rule": decision.rule.value,
    }
    if decision.acl is not None:
        entry["acl"] = acl_fields(decision.acl)
    return entry


def acl_fields(acl: Acl) -> dict[str, str]:
    """Return an ACL's fields as texts, for JSON."""
    return {
        "resource": ResourceType(acl.resource_type).name,
        "name": _cut(acl.resource_name),
        "pattern": PatternType(acl.pattern_type).name,
        "principal": _cut(acl.principal),
        "host": _cut(acl.host),
        "operation": Operation(acl.operation).name,
        "permission": Permission(acl.permission).name,
    }


def _cut(text: str) -> str:
    """Return the beginning of a text that a client or an administrator chose, which may have megabytes."""
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}..."


def _time(now_ms: int) -> str:
    return datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
