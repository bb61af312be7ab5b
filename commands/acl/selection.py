"""Options of `barnabas acl` that name resources, principals and operations, and the ACLs and filters they mean.

`--producer` and `--consumer` are kafka-acls's: the operations that a producer or a consumer needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Final, NamedTuple, TypeVar

import click

from barnabas.commands.exit_codes import ExitCode
from barnabas.commands.failures import CommandFailure
from barnabas.protocol.messages.security.acls import Acl, AclFilter
from barnabas.protocol.messages.security.resources import (
    CLUSTER_NAME,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

Command = TypeVar("Command", bound=Callable[..., object])

OPERATIONS: Final = tuple(each.name.lower().replace("_", "-") for each in Operation if each > Operation.ANY)
_PERMISSIONS: Final = ("allow", "deny")
_PATTERNS: Final = ("literal", "prefixed")
_FILTER_PATTERNS: Final = (*_PATTERNS, "any", "match")
_NAMED: Final = {
    "topics": ("--topic", ResourceType.TOPIC),
    "groups": ("--group", ResourceType.GROUP),
    "transactional_ids": ("--transactional-id", ResourceType.TRANSACTIONAL_ID),
    "tokens": ("--delegation-token", ResourceType.DELEGATION_TOKEN),
    "users": ("--user", ResourceType.USER),
}

_OF_PRODUCER: Final = {
    ResourceType.TOPIC: (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
}
_OF_CONSUMER: Final = {
    ResourceType.TOPIC: (Operation.READ, Operation.DESCRIBE),
    ResourceType.GROUP: (Operation.READ,),
}


class Resource(NamedTuple):
    """A type with a name; None stands for every name in a filter."""

    type: ResourceType
    name: str | None


def resource_options(command: Command) -> Command:
    """`--topic NAME` and so on, each repeatable, and `--cluster`."""
    for argument, (option, kind) in reversed(_NAMED.items()):
        label = kind.name.lower().replace("_", " ")
        note = " (a principal: User:alice)" if kind is ResourceType.USER else ""
        command = click.option(
            option, argument, multiple=True, metavar="NAME", help=f"A {label}{note}; '*' is every one. Repeatable."
        )(command)
    return click.option("--cluster", is_flag=True, help="The cluster itself.")(command)


def pattern_option(*, default: str, filters: bool) -> Callable[[Command], Command]:
    """`--pattern`: how the names match."""
    choices = _FILTER_PATTERNS if filters else _PATTERNS
    text = "How the resources' names match." + (
        " match: all ACLs that concern the name, wildcards and prefixes included." if filters else ""
    )
    return click.option(
        "--pattern", type=click.Choice(choices, case_sensitive=False), default=default, show_default=True, help=text
    )


operations_option: Final = click.option(
    "--operation",
    "operations",
    type=click.Choice(OPERATIONS, case_sensitive=False),
    multiple=True,
    help="Repeatable.",
)


def filter_options(*, pattern: str) -> Callable[[Command], Command]:
    """Options that select rules, which are the arguments of `filters_of`; `pattern` is the default of `--pattern`."""

    def decorated(command: Command) -> Command:
        for option in (
            click.option("--permission", type=click.Choice(_PERMISSIONS, case_sensitive=False)),
            click.option("--host", "hosts", multiple=True, metavar="IP", help="Repeatable."),
            operations_option,
            pattern_option(default=pattern, filters=True),
            resource_options,
            click.option("--principal", "principals", multiple=True, metavar="User:NAME", help="Repeatable."),
        ):
            command = option(command)
        return command

    return decorated


def named_resources(cluster: bool, **names: tuple[str, ...]) -> list[Resource]:
    """Return the resources of the options; `names` are the arguments of `resource_options`."""
    found = [Resource(_NAMED[argument][1], name) for argument, given in names.items() for name in given]
    return [*found, Resource(ResourceType.CLUSTER, CLUSTER_NAME)] if cluster else found


def ensure_principals(principals: Iterable[str]) -> None:
    """Raise CommandFailure for a principal that no client can have, so that `alice` does not select nothing."""
    for text in principals:
        kind, _, name = text.partition(":")
        if not kind or not name:
            raise _usage(f"{text!r} is not a principal: write User:NAME, such as User:alice")


def parse_operation(text: str) -> Operation:
    """Return the operation of an option's text."""
    return Operation[text.upper().replace("-", "_")]


def parse_pattern_type(text: str) -> PatternType:
    """Return the pattern type of an option's text."""
    return PatternType[text.upper()]


def acls_to_add(
    resources: list[Resource],
    *,
    principals: tuple[str, ...],
    hosts: tuple[str, ...],
    operations: tuple[str, ...],
    pattern: str,
    deny: bool,
    producer: bool,
    consumer: bool,
) -> list[Acl]:
    """Return the ACLs to create, without repetitions. Raises CommandFailure where an option is missing."""
    ensure_principals(principals)
    if not resources:
        raise _usage("name a resource: --topic, --group, --cluster, --transactional-id, --delegation-token or --user")
    wanted = [
        (resource, operation)
        for resource in resources
        for operation in (*map(parse_operation, operations), *_of_roles(resource, producer=producer, consumer=consumer))
    ]
    unused = [resource for resource in resources if resource not in {each for each, _ in wanted}]
    if unused:
        raise _usage(f"give an --operation for the {unused[0].type.name.lower()}")
    missing = _OF_CONSUMER if consumer else {ResourceType.TOPIC: ()} if producer else {}
    for kind in missing:
        if all(resource.type is not kind for resource in resources):
            raise _usage(f"--{'consumer' if consumer else 'producer'} needs a --{kind.name.lower()}")
    permission = Permission.DENY if deny else Permission.ALLOW
    return list(
        dict.fromkeys(
            Acl(resource.type, resource.name or "", _pattern_of(resource, pattern), who, host, operation, permission)
            for who, host, (resource, operation) in product(principals, hosts, wanted)
        )
    )


def filters_of(
    *,
    principals: tuple[str, ...],
    hosts: tuple[str, ...],
    operations: tuple[str, ...],
    pattern: str,
    permission: str | None,
    cluster: bool,
    **names: tuple[str, ...],
) -> list[AclFilter]:
    """Return the filters that `filter_options` mean; without any option, one that selects everything.

    Raises CommandFailure.
    """
    ensure_principals(principals)
    resources = named_resources(cluster, **names) or [Resource(ResourceType.ANY, None)]
    codes = [*map(parse_operation, operations)] or [Operation.ANY]
    allowed = Permission.ANY if permission is None else Permission[permission.upper()]
    return [
        AclFilter(
            resource_type=resource.type,
            resource_name=resource.name,
            pattern_type=PatternType.ANY if resource.name is None else parse_pattern_type(pattern),
            principal=who,
            host=host,
            operation=code,
            permission=allowed,
        )
        for resource, who, host, code in product(resources, principals or (None,), hosts or (None,), codes)
    ]


def _of_roles(resource: Resource, *, producer: bool, consumer: bool) -> Iterator[Operation]:
    if producer:
        yield from _OF_PRODUCER.get(resource.type, ())
    if consumer:
        yield from _OF_CONSUMER.get(resource.type, ())


def _pattern_of(resource: Resource, pattern: str) -> PatternType:
    """Return the pattern type; the cluster's name and `*` are always literal."""
    if resource.type is ResourceType.CLUSTER:
        return PatternType.LITERAL
    return parse_pattern_type(pattern)


def _usage(sentence: str) -> CommandFailure:
    return CommandFailure(sentence, ExitCode.USAGE)
