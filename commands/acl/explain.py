"""`barnabas acl explain`: the rule that decides for a principal, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from barnabas.commands.acl.selection import (
    OPERATIONS,
    ensure_principals,
    named_resources,
    parse_operation,
    resource_options,
)
from barnabas.commands.exit_codes import ExitCode
from barnabas.commands.failures import CommandFailure
from barnabas.commands.options import json_option
from barnabas.commands.output import print_json, print_line, print_table
from barnabas.commands.target import Target, target_options
from barnabas.protocol.messages.security.acls import AclFilter
from barnabas.protocol.messages.security.resources import Operation, PatternType

if TYPE_CHECKING:
    from barnabas.broker.authorization.explain import Explanation
    from barnabas.broker.authorization.rules import Action


@click.command()
@click.option("--principal", required=True, metavar="User:NAME", help="The client; User:ANONYMOUS has not logged in.")
@click.option("--operation", type=click.Choice(OPERATIONS, case_sensitive=False), required=True)
@resource_options
@click.option("--host", default="127.0.0.1", show_default=True, metavar="IP", help="The client's address.")
@json_option
@target_options
def explain(
    principal: str,
    operation: str,
    cluster: bool,
    host: str,
    as_json: bool,
    target: Target,
    **names: tuple[str, ...],
) -> None:
    """Show whether a principal may do something, by which rule, and what the other rules of the resource do.

    Rules come from a running broker or, with --log-dir or --config, from the directories of a stopped one. The
    properties super.users and allow.everyone.if.no.acl.found come from --config or from the running broker, where the
    client needs DESCRIBE_CONFIGS on the cluster. Apache Kafka does not show them.
    """
    from barnabas.broker.authorization.decisions import DEFAULT_ALLOW, DEFAULT_DENY
    from barnabas.broker.authorization.explain import explain as explain_action
    from barnabas.broker.authorization.index import AclIndex
    from barnabas.broker.authorization.rules import Action
    from barnabas.commands.acl.acl import selected_acls
    from barnabas.commands.acl.rows import COLUMNS, acl_json, acl_row
    from barnabas.commands.acl.settings import authorizer_settings

    ensure_principals([principal])
    resources = named_resources(cluster, **names)
    if len(resources) != 1 or not resources[0].name:
        raise CommandFailure("name one resource, such as --topic orders", ExitCode.USAGE)
    kind, name = resources[0].type, resources[0].name
    code = parse_operation(operation)
    if code is Operation.ALL:
        raise CommandFailure("name one operation: a client never asks for all of them", ExitCode.USAGE)
    action = Action(principal, host, code, kind, name)
    matching = AclFilter(resource_type=kind, resource_name=name, pattern_type=PatternType.MATCH)
    acls = selected_acls([matching], target)
    settings = authorizer_settings(target)
    found = explain_action(
        AclIndex(acls),
        action,
        super_users=settings.super_users,
        default=DEFAULT_ALLOW if settings.allows_without_acl else DEFAULT_DENY,
    )
    if as_json:
        print_json(
            {
                "allowed": found.decision.allowed,
                "rule": found.decision.rule.value,
                "reason": found.reason,
                "settings_known": settings.are_known,
                "acl": None if found.decision.acl is None else acl_json(found.decision.acl),
                "considered": [{**acl_json(each.acl), "effect": each.effect} for each in found.considered],
            }
        )
        return
    print_line(_sentence(action, found, are_settings_known=settings.are_known))
    if found.considered:
        print_table((*COLUMNS, "effect"), [[*acl_row(each.acl), each.effect] for each in found.considered])
    if not settings.are_known:
        print_line(
            "super.users and allow.everyone.if.no.acl.found are not known, and taken as empty and false: "
            f"{settings.unknown_because}"
        )
    elif not settings.is_authorizing:
        print_line("authorizer.class.name is empty: this broker allows everything")


def _sentence(action: Action, found: Explanation, *, are_settings_known: bool) -> str:
    may = "may" if found.decision.allowed else "may not"
    what = f"{action.operation.name} {action.resource.name} {action.name}"
    unless = "" if found.decision.allowed or are_settings_known else ", unless it is in super.users"
    return f"{action.principal} from host {action.host} {may} {what}{unless}: {found.reason}."
