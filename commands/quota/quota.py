"""`barnabas quota ...`: limits of users, client ids and addresses, as `kafka-configs` changes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from barnabas.commands.exit_codes import ExitCode
from barnabas.commands.failures import CommandFailure
from barnabas.commands.options import json_option
from barnabas.commands.output import print_json, print_line, print_table
from barnabas.commands.target import Change, Target, target_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from barnabas.protocol.messages.security.client_quotas import EntityPair, QuotaOp

Command = TypeVar("Command", bound=Callable[..., object])

_OPTIONS: Final = {
    "user": ("user", "--user", "--user-defaults", "users"),
    "client": ("client-id", "--client", "--client-defaults", "client ids"),
    "ip": ("ip", "--ip", "--ip-defaults", "addresses"),
}

_OF_ADDRESSES: Final = "connection_creation_rate"

KEYS: Final = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    _OF_ADDRESSES,
)


def entity_options(command: Command) -> Command:
    """`--user NAME`, `--user-defaults`, and the same for clients and addresses."""
    for argument, (_, option, defaults, plural) in reversed(_OPTIONS.items()):
        command = click.option(
            defaults, f"{argument}_defaults", is_flag=True, help=f"All {plural} without limits of their own."
        )(command)
        command = click.option(option, argument, metavar="NAME", help=f"One of the {plural}.")(command)
    return command


@click.group()
def quota() -> None:
    """Set, list and delete limits of users, client ids and addresses.

    A user and a client together limit that client of that user. The commands work with Apache Kafka, too.
    With --log-dir or --config they read or change the directories of a stopped broker.
    """


@quota.command(name="set")
@click.argument("limits", metavar="KEY=VALUE...", nargs=-1, required=True)
@entity_options
@target_options
def set_(limits: tuple[str, ...], target: Target, **named: Any) -> None:
    """Set limits.

    producer_byte_rate and consumer_byte_rate are bytes per second, request_percentage is percent of the broker's time,
    controller_mutation_rate created and deleted partitions per second. An address has one limit:
    connection_creation_rate, new connections per second.
    """
    from barnabas.protocol.messages.security.client_quotas import QuotaOp

    entity = _entity(named)
    ops = [QuotaOp(key=key, value=value) for key, value in map(_limit, limits)]
    _ensure_limits_of(entity, (op.key for op in ops))
    _alter(entity, ops, target)
    print_line(f"{_text(entity)}: {', '.join(limits)}")


@quota.command()
@click.argument("keys", metavar="KEY...", nargs=-1, required=True)
@entity_options
@target_options
def delete(keys: tuple[str, ...], target: Target, **named: Any) -> None:
    """Delete limits. If one of them is not set, none is deleted."""
    from barnabas.protocol.messages.security.client_quotas import QuotaOp

    for key in keys:
        _ensure_key(key)
    entity = _entity(named)
    present = _limits_of(entity, target)
    absent = [key for key in keys if key not in present]
    if absent:
        raise CommandFailure(f"{_text(entity)}: {', '.join(absent)} not set; nothing was deleted")
    _alter(entity, [QuotaOp(key=key, value=0.0, remove=True) for key in keys], target)
    print_line(f"{_text(entity)}: no {', '.join(keys)}")


@quota.command(name="list")
@entity_options
@json_option
@target_options
def list_(as_json: bool, target: Target, **named: Any) -> None:
    """List limits, by default of everything."""
    found = _described(_parts(named), target)
    if as_json:
        print_json([{"entity": dict(entity), "limits": limits} for entity, limits in found])
        return
    rows = [(_text(entity), key, _number(value)) for entity, limits in found for key, value in limits.items()]
    print_table(["entity", "limit", "value"], sorted(rows))


def _parts(named: Mapping[str, Any]) -> list[EntityPair]:
    """Return the entity of the options, empty without any. Raises CommandFailure."""
    parts: list[EntityPair] = []
    for argument, (kind, option, defaults, _) in _OPTIONS.items():
        name, is_default = named[argument], named[f"{argument}_defaults"]
        if name is not None and is_default:
            raise CommandFailure(f"give {option} or {defaults}, not both", ExitCode.USAGE)
        if name is not None or is_default:
            parts.append((kind, name))
    return parts


def _entity(named: Mapping[str, Any]) -> list[EntityPair]:
    """Return the entity of the options. Raises CommandFailure without one."""
    parts = _parts(named)
    if not parts:
        raise CommandFailure("name a --user, a --client or an --ip, or their defaults", ExitCode.USAGE)
    return parts


def _limit(text: str) -> tuple[str, float]:
    """Parse `key=value`. Raises CommandFailure."""
    key, separator, value = text.partition("=")
    _ensure_key(key)
    if not separator:
        raise CommandFailure(f"{text} has no value: write {key}=VALUE", ExitCode.USAGE)
    try:
        return key, float(value)
    except ValueError as error:
        raise CommandFailure(f"{text}: {value!r} is not a number", ExitCode.USAGE) from error


def _ensure_key(key: str) -> None:
    if key not in KEYS:
        raise CommandFailure(f"{key!r} is not a limit; known are {', '.join(KEYS)}", ExitCode.USAGE)


def _ensure_limits_of(entity: Iterable[EntityPair], keys: Iterable[str]) -> None:
    """Raise CommandFailure for a limit of addresses on a user or client id, and the reverse."""
    is_address = any(kind == "ip" for kind, _ in entity)
    for key in keys:
        if (key == _OF_ADDRESSES) != is_address:
            owner = "users and client ids, not of addresses" if is_address else "addresses: give --ip or --ip-defaults"
            raise CommandFailure(f"{key} is a limit of {owner}", ExitCode.USAGE)


def _described(parts: Sequence[EntityPair], target: Target) -> list[tuple[Sequence[EntityPair], dict[str, float]]]:
    """Return every entity that contains these parts, and its limits."""
    from barnabas.commands.kafka_session import ensure_answered
    from barnabas.protocol.messages.security.client_quotas import (
        MATCH_DEFAULT,
        MATCH_EXACT,
        DescribeClientQuotasRequest,
        QuotaFilter,
        pairs_of,
    )

    if target.directories:
        stored = target.stored().security.quotas.items()
        return [(entity, dict(limits)) for entity, limits in stored if {*parts} <= {*entity}]
    filters = [
        QuotaFilter(entity_type=kind, match_type=MATCH_DEFAULT if name is None else MATCH_EXACT, match=name)
        for kind, name in parts
    ]
    (answer,) = target.ask(DescribeClientQuotasRequest(filters=filters))
    ensure_answered(answer.error, answer.message)
    return [(pairs_of(each.entity), {limit.key: limit.value for limit in each.values}) for each in answer.entries or ()]


def _limits_of(entity: Sequence[EntityPair], target: Target) -> set[str]:
    """Return the keys of the limits of exactly this entity."""
    found = _described(entity, target)
    return {key for parts, limits in found if dict(parts) == dict(entity) for key in limits}


def _alter(entity: Sequence[EntityPair], ops: Sequence[QuotaOp], target: Target) -> None:
    from barnabas.broker.metadata.security.hosts import is_resolvable
    from barnabas.broker.metadata.security.quotas import plan_alter_quotas
    from barnabas.commands.kafka_session import ensure_answered
    from barnabas.protocol.messages.security.client_quotas import AlterClientQuotasRequest, QuotaAlteration, entity_of

    altered = [QuotaAlteration(entity=entity_of(entity), ops=ops)]
    call = AlterClientQuotasRequest(entries=altered)
    change = Change(call, lambda image: plan_alter_quotas(image, altered, resolves=is_resolvable))
    (results,) = target.change([change])
    for result in results:
        ensure_answered(result.error, result.message)


def _text(entity: Iterable[EntityPair]) -> str:
    """Return an entity in words: `user alice, default client-id`."""
    return ", ".join(f"default {kind}" if name is None else f"{kind} {name}" for kind, name in entity)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)
