"""The authorizer that a configuration asks for.

Properties: authorizer.class.name, super.users, allow.everyone.if.no.acl.found, audit.log.path, audit.log.grants,
audit.log.max.bytes, audit.log.max.lines.per.second.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.broker.startup_error import StartupError
from barnabas.config.security.security_checks import super_users

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.broker.authorization.audit import AuditSink
    from barnabas.broker.authorization.authorizer import Authorizer
    from barnabas.config import BrokerConfig


def configured_authorizer(config: BrokerConfig, wall_ms: Callable[[], int]) -> Authorizer | None:
    """Return the authorizer, None if authorizer.class.name is empty. It has no ACLs yet.

    Raises StartupError if the audit log cannot be opened.
    """
    if not config.get_str("authorizer.class.name"):
        return None
    from barnabas.broker.authorization.audit import AuditLog
    from barnabas.broker.authorization.authorizer import Authorizer

    audit = AuditLog(
        _sink(config),
        grants=config.get_bool("audit.log.grants"),
        max_per_second=config.get_int("audit.log.max.lines.per.second"),
        wall_ms=wall_ms,
    )
    allow_if_no_acl = config.get_bool("allow.everyone.if.no.acl.found")
    return Authorizer(
        super_users=super_users(config.get_str("super.users")), allow_if_no_acl=allow_if_no_acl, audit=audit
    )


def _sink(config: BrokerConfig) -> AuditSink:
    from barnabas.broker.authorization.audit import LoggerSink
    from barnabas.broker.authorization.audit_file import AuditFile

    path = config.get_str("audit.log.path")
    if not path:
        return LoggerSink()
    try:
        return AuditFile(Path(path), max_bytes=config.get_int("audit.log.max.bytes"))
    except OSError as error:
        raise StartupError(f"cannot open the audit log {path} (audit.log.path): {error.strerror}") from error
