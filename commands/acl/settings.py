"""The broker's properties that decide where no ACL does: super.users and allow.everyone.if.no.acl.found."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from barnabas.commands.failures import CommandFailure
from barnabas.commands.target import Target
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
    from barnabas.protocol.messages.cluster.configs import (
        BROKER_RESOURCE,
        DescribeConfigsRequest,
        DescribeConfigsResource,
    )
    from barnabas.protocol.messages.cluster.describe_cluster import DescribeClusterRequest

    (cluster,) = target.ask(DescribeClusterRequest())
    if len(cluster.brokers) != 1:
        return AuthorizerSettings(unknown_because=f"the cluster has {len(cluster.brokers)} brokers, each with its own")
    resource = DescribeConfigsResource(
        type=BROKER_RESOURCE, name=str(cluster.brokers[0].node_id), names=[AUTHORIZER, SUPER_USERS, DEFAULT]
    )
    (answer,) = target.ask(DescribeConfigsRequest(resources=[resource]))
    (broker,) = answer.results
    if broker.error is not ErrorCode.NONE:
        return AuthorizerSettings(
            unknown_because=f"the broker does not describe its configuration to this client ({broker.error.name}); "
            "that needs DESCRIBE_CONFIGS on the cluster"
        )
    shown = {each.name: each.value for each in broker.entries if not each.sensitive}
    if not {SUPER_USERS, DEFAULT} <= shown.keys():
        return AuthorizerSettings(unknown_because="the broker hides them, as Apache Kafka does")
    return _settings(shown)


def _settings(values: Mapping[str, str | None]) -> AuthorizerSettings:
    from barnabas.config.security.security_checks import super_users

    return AuthorizerSettings(
        frozenset(super_users(values[SUPER_USERS] or "")),
        values[DEFAULT] == "true",
        bool(values.get(AUTHORIZER)),
    )
