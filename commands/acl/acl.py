"""`barnabas acl ...`: access rules of the StandardAuthorizer, as `kafka-acls` changes them."""

from __future__ import annotations

import sys
from typing import Any

import click

from barnabas.commands.acl.selection import (
    acls_to_add,
    filter_options,
    filters_of,
    named_resources,
    operations_option,
    pattern_option,
    resource_options,
)
from barnabas.commands.exit_codes import ExitCode
from barnabas.commands.failures import CommandFailure
from barnabas.commands.lazy_group import LazyCommand, LazyGroup
from barnabas.commands.options import json_option
from barnabas.commands.output import print_json, print_line, print_table
from barnabas.commands.target import Change, Target, target_options
from barnabas.protocol.messages.security.acls import (
    Acl,
    AclFilter,
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
)

_NONE_SELECTED = "no rule is selected"

_HERE = "barnabas.commands.acl"


@click.group(
    cls=LazyGroup,
    commands_by_name={
        "add": LazyCommand(f"{_HERE}.acl:add", "Allow or deny operations."),
        "list": LazyCommand(f"{_HERE}.acl:list_", "List access rules."),
        "explain": LazyCommand(f"{_HERE}.explain:explain", "Show which rule decides for a user, and why."),
        "delete": LazyCommand(f"{_HERE}.acl:delete", "Delete access rules."),
    },
)
def acl() -> None:
    """Add, list, explain and delete access rules (ACLs).

    They decide where the broker has authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer. The
    commands work with Apache Kafka, too. With --log-dir or --config they read or change the directories of a stopped
    broker.
    """


@click.command()
@click.option(
    "--principal", "principals", multiple=True, required=True, metavar="User:NAME", help="User:* is all. Repeatable."
)
@resource_options
@pattern_option(default="literal", filters=False)
@operations_option
@click.option("--producer", is_flag=True, help="What a producer needs on the topics and transactional ids.")
@click.option("--consumer", is_flag=True, help="What a consumer needs on the topics and groups.")
@click.option(
    "--host", "hosts", multiple=True, default=["*"], show_default=True, metavar="IP", help="Client address. Repeatable."
)
@click.option("--deny", is_flag=True, help="Deny instead of allow. A denial beats every permission.")
@target_options
def add(
    principals: tuple[str, ...],
    cluster: bool,
    pattern: str,
    operations: tuple[str, ...],
    producer: bool,
    consumer: bool,
    hosts: tuple[str, ...],
    deny: bool,
    target: Target,
    **names: tuple[str, ...],
) -> None:
    """Allow, or deny, operations on resources.

    Reading, writing, deleting and altering imply describing. A rule that exists already is a success.
    """
    from barnabas.broker.metadata.security.acls import plan_create_acls
    from barnabas.commands.kafka_session import ensure_answered

    resources = named_resources(cluster, **names)
    acls = acls_to_add(
        resources,
        principals=principals,
        hosts=hosts,
        operations=operations,
        pattern=pattern,
        deny=deny,
        producer=producer,
        consumer=consumer,
    )
    call = CreateAclsRequest.of(acls)
    (results,) = target.change([Change(call, lambda image: plan_create_acls(image, acls))])
    for created, result in zip(acls, results, strict=True):
        ensure_answered(result.error, result.message)
        print_line(str(created))


@click.command()
@filter_options(pattern="any")
@json_option
@target_options
def list_(as_json: bool, target: Target, **selection: Any) -> None:
    """List the rules that all options select; an option that is repeated selects any of its values."""
    from barnabas.commands.acl.rows import COLUMNS, acl_json, acl_row

    found = selected_acls(filters_of(**selection), target)
    if as_json:
        print_json([acl_json(each) for each in found])
        return
    print_table(COLUMNS, [acl_row(each) for each in found])


@click.command()
@filter_options(pattern="literal")
@click.option("--all", "every", is_flag=True, help="Without another option: delete every rule.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation (only a terminal is asked, never a script).")
@target_options
def delete(every: bool, yes: bool, target: Target, **selection: Any) -> None:
    """Delete the rules that all options select, and print them."""
    from barnabas.broker.metadata.security.acls import plan_delete_acls
    from barnabas.commands.kafka_session import ensure_answered
    from barnabas.explanation.wording import counted

    filters = filters_of(**selection)
    if filters == [AclFilter()] and not every:
        raise CommandFailure("name a resource, a principal, an operation or a host; or give --all", ExitCode.USAGE)
    if not yes and sys.stdin.isatty() and sys.stdout.isatty():
        found = selected_acls(filters, target)
        for each in found:
            print_line(str(each))
        if not found or not click.confirm(f"Delete {counted(len(found), 'rule')}?"):
            return
    if target.directories and not selected_acls(filters, target):  # a change would create missing directories
        raise CommandFailure(_NONE_SELECTED)
    call = DeleteAclsRequest(filters=filters)
    (results,) = target.change([Change(call, lambda image: plan_delete_acls(image, filters))])
    for result in results:
        ensure_answered(result.error, result.message)
    deleted = dict.fromkeys(each for result in results for each in result.deleted)
    for each in deleted:
        print_line(f"deleted: {each}")
    if not deleted:
        raise CommandFailure(_NONE_SELECTED)


def selected_acls(filters: list[AclFilter], target: Target) -> list[Acl]:
    """Return the ACLs that any filter selects, sorted. Raises BrokerError, CommandFailure, OSError."""
    from barnabas.commands.kafka_session import ensure_answered

    if target.directories:
        stored = target.stored().security.acls.values()
        return sorted({each for each in stored if any(selected.matches(each) for selected in filters)})
    found: set[Acl] = set()
    for answer in target.ask(*(DescribeAclsRequest.of(each) for each in filters)):
        ensure_answered(answer.error, answer.message)
        found.update(answer.acls)
    return sorted(found)
