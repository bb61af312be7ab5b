"""The broker's properties that decide where no ACL does: super.users and allow.everyone.if.no.acl.found."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from barnabas.commands.failures import CommandFailure
from barnabas.commands.target import Call, Target
from barnabas.protocol.errors import ErrorCode

AUTHORIZER: Final = "authorizer.class.name"
SUPER_USERS: Final = "super.users"
DEFAULT: Final = "allow.everyone.if.no.acl.found"


class AuthorizerSettings(NamedTuple):
    """Values of the properties. `unknown_because` is a clause, empty if they are known."""

    super_users: frozenset[str] = frozenset()
    allows_without_acl: bool = False
    is_authorizing: bool = True
    unknown_because: str = ""

    @property
    def are_known(self) -> bool:
        """Whether the values are the broker's, and not assumed."""
        return not self.unknown_because


def authorizer_settings(target: Target) -> AuthorizerSettings:
    """Return the settings of a server.properties or of a running broker.

    Raises CommandFailure, and the errors of `Target.ask`.
    """
    if target.directories.config_file is not None:
        return _of_file(target.directories.config_file)
    if target.directories:
        return AuthorizerSettings(unknown_because="log directories do not contain them; --config FILE does")
    return _of_broker(target)


def _of_file(config_file: Path) -> AuthorizerSettings:
    from barnabas.config.loader import ConfigError, load

    try:
        config = load(config_file=config_file, environ=os.environ)
    except ConfigError as error:
        raise CommandFailure(str(error)) from error
    default = "true" if config.get_bool(DEFAULT) else "false"
    return _settings(
        {AUTHORIZER: config.get_str(AUTHORIZER), SUPER_USERS: config.get_str(SUPER_USERS), DEFAULT: default}
    )


def _of_broker(target: Target) -> AuthorizerSettings:
    from barnabas.protocol.kafka.broker_config_requests import BROKER_PROPERTIES, NODE_IDS, properties_request
    from barnabas.protocol.messages.cluster.describe_cluster import DescribeClusterRequest

    (node_ids,) = target.ask(Call(NODE_IDS, DescribeClusterRequest()))
    if len(node_ids) != 1:
        return AuthorizerSettings(unknown_because=f"the cluster has {len(node_ids)} brokers, each with its own")
    wanted = properties_request(node_ids[0], [AUTHORIZER, SUPER_USERS, DEFAULT])
    (broker,) = target.ask(Call(BROKER_PROPERTIES, wanted))
    if broker.error:
        return AuthorizerSettings(
            unknown_because=f"the broker does not describe its configuration to this client ({_reason(broker.error)}); "
            "that needs DESCRIBE_CONFIGS on the cluster"
        )
    shown = {each.name: each.value for each in broker.properties if not each.is_sensitive}
    if not {SUPER_USERS, DEFAULT} <= shown.keys():
        return AuthorizerSettings(unknown_because="the broker hides them, as Apache Kafka does")
    return _settings(shown)


def _reason(code: int) -> str:
    return ErrorCode(code).name if code in set(ErrorCode) else f"error {code}"


def _settings(values: Mapping[str, str | None]) -> AuthorizerSettings:
    from barnabas.config.security.security_checks import super_users

    return AuthorizerSettings(
        frozenset(super_users(values[SUPER_USERS] or "")),
        values[DEFAULT] == "true",
        bool(values.get(AUTHORIZER)),
    )
