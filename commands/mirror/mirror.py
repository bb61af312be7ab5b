"""`barnabas mirror ...`: create, list, describe, alter, pause, resume, promote, fail back and delete mirrors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.commands.mirror.alteration import alter
from barnabas.commands.mirror.failback import failback
from barnabas.commands.mirror.promotion import promote
from barnabas.commands.options import (
    bootstrap_and_broker_config_options,
    bootstrap_option,
    json_option,
    timeout_option,
)

if TYPE_CHECKING:
    from barnabas.clients.admin.admin import Admin
    from barnabas.protocol.messages.cluster.mirrors import MirrorDescription


@click.group()
def mirror() -> None:
    """Copy topics of another cluster into this broker, with the same offsets.

    A mirror copies the topics of a source, Apache Kafka or any broker of its protocol, as its consumer does, batch by
    batch. While they are mirrored, the topics are read-only here. The source is asked for nothing but reads.
    """


mirror.add_command(alter)
mirror.add_command(promote)
mirror.add_command(failback)


@mirror.command()
@click.argument("name")
@click.option(
    "--source", "sources", multiple=True, required=True, metavar="HOST:PORT", help="A broker of the source. Repeatable."
)
@click.option(
    "--topics",
    "topics",
    multiple=True,
    required=True,
    metavar="PATTERN",
    help="Topics to copy: a regular expression that matches the whole name. Internal topics are never copied. "
    "Repeatable.",
)
@click.option(
    "--groups",
    "groups",
    multiple=True,
    metavar="PATTERN",
    help="Consumer groups whose committed offsets are followed. Repeatable.",
)
@click.option(
    "--command-config",
    "command_config",
    metavar="FILE",
    help="Client properties for TLS and a login at the source. The broker reads the file, so this is a path on the "
    "broker's machine. The definition contains only the path, no passwords.",
)
@click.option(
    "--start",
    default="earliest",
    show_default=True,
    metavar="WHERE",
    help="Where the copy of a topic begins: earliest, latest, or a time (ISO 8601 or ms since 1970).",
)
@click.option(
    "--follow-configs/--no-follow-configs",
    default=True,
    show_default=True,
    help="Give the topics the configs that they have at the source. Needs DESCRIBE_CONFIGS there.",
)
@click.option(
    "--max-bytes-per-second", type=click.IntRange(min=1), metavar="N", help="Limit of the mirror's received bytes."
)
@click.option(
    "--keep-cut",
    is_flag=True,
    help="If the source has lost records that were copied, keep them in a file before they are cut.",
)
@click.option(
    "--metadata-max-age-ms",
    type=click.IntRange(100, 3_600_000),
    default=5_000,
    show_default=True,
    help="Longest time between two looks at the source's topics. Topics that are named without a pattern are requested "
    "by name.",
)
@click.option("--paused", is_flag=True, help="Create the mirror without starting it.")
@json_option
@bootstrap_and_broker_config_options
@timeout_option
def create(
    name: str,
    sources: tuple[str, ...],
    topics: tuple[str, ...],
    groups: tuple[str, ...],
    command_config: str | None,
    start: str,
    follow_configs: bool,
    max_bytes_per_second: int | None,
    keep_cut: bool,
    metadata_max_age_ms: int,
    paused: bool,
    as_json: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Create the mirror NAME, and start it.

    The source's ACLs must allow READ and DESCRIBE of the topics, DESCRIBE_CONFIGS of them unless --no-follow-configs,
    and DESCRIBE of the groups.
    """
    from barnabas.commands.mirror.descriptions import as_object
    from barnabas.commands.output import print_json, print_line
    from barnabas.commands.session import with_admin

    path = None if command_config is None else str(Path(command_config).absolute())

    async def work(admin: Admin) -> MirrorDescription:
        return await admin.mirrors.create(
            name,
            bootstrap=[address.strip() for each in sources for address in each.split(",") if address.strip()],
            topics=topics,
            groups=groups,
            command_config=path,
            start=start,
            follow_configs=follow_configs,
            max_bytes_per_second=max_bytes_per_second,
            keep_cut=keep_cut,
            metadata_max_age_ms=metadata_max_age_ms,
            paused=paused,
        )

    created = with_admin(bootstrap, timeout_s, work)
    if as_json:
        print_json(as_object(created))
        return
    print_line(f"created mirror {name}; `barnabas mirror describe {name}` shows its progress")


@mirror.command(name="list")
@json_option
@bootstrap_option
@timeout_option
def list_(as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """List the mirrors with their state and greatest lag."""
    from barnabas.commands.mirror.descriptions import as_object, lag_of
    from barnabas.commands.output import print_json, print_table
    from barnabas.commands.session import with_admin

    found = with_admin(bootstrap, timeout_s, lambda admin: admin.mirrors.describe_all())
    if as_json:
        print_json([as_object(each) for each in found])
        return
    print_table(
        ["mirror", "state", "source", "topics", "partitions", "lag records", "lag seconds"],
        [
            [
                each.name,
                each.state,
                ",".join(each.fields.get("bootstrap", ())),
                len(each.topics),
                len(each.partitions),
                *lag_of(each),
            ]
            for each in found
        ],
    )


@mirror.command()
@click.argument("name")
@json_option
@bootstrap_option
@timeout_option
def describe(name: str, as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """Show the definition, the state, and every partition of the mirror NAME with its lag.

    A partition's lag is in records, and in seconds since the copy last had all records of the source.
    """
    from barnabas.commands.mirror.descriptions import as_object, print_description
    from barnabas.commands.output import print_json
    from barnabas.commands.session import with_admin

    found = with_admin(bootstrap, timeout_s, lambda admin: admin.mirrors.describe(name))
    if as_json:
        print_json(as_object(found))
    else:
        print_description(found)


@mirror.command()
@click.argument("name")
@bootstrap_option
@timeout_option
def pause(name: str, bootstrap: str, timeout_s: float) -> None:
    """Stop copying. The topics of the mirror NAME stay read-only and keep their records."""
    _command(bootstrap, timeout_s, lambda admin: admin.mirrors.pause(name), f"paused mirror {name}")


@mirror.command()
@click.argument("name")
@bootstrap_option
@timeout_option
def resume(name: str, bootstrap: str, timeout_s: float) -> None:
    """Copy again after `pause`. Topics of the mirror NAME that were deleted here are created again."""
    _command(bootstrap, timeout_s, lambda admin: admin.mirrors.resume(name), f"resumed mirror {name}")


@mirror.command()
@click.argument("name")
@click.option(
    "--release-topics",
    is_flag=True,
    help="Make the mirror's topics writable as they are. Transactions that are open in them stay open, and records "
    "that were not copied are missing.",
)
@bootstrap_option
@timeout_option
def delete(name: str, release_topics: bool, bootstrap: str, timeout_s: float) -> None:
    """Delete the mirror NAME. Its topics and their records are kept.

    Without --release-topics, a mirror with read-only topics is not deleted. `barnabas mirror promote` makes them
    writable with all transactions settled.
    """
    from barnabas.commands.output import print_line
    from barnabas.commands.session import with_admin
    from barnabas.explanation.wording import counted

    released = with_admin(bootstrap, timeout_s, lambda admin: admin.mirrors.delete(name, release_topics=release_topics))
    print_line(f"deleted mirror {name}" + (f"; {counted(len(released), 'topic')} writable now" if released else ""))


def _command(bootstrap: str, timeout_s: float, work: Any, done: str) -> None:
    from barnabas.commands.output import print_line
    from barnabas.commands.session import with_admin

    with_admin(bootstrap, timeout_s, work)
    print_line(done)
