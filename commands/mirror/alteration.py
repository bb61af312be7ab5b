"""`barnabas mirror alter`: change the definition of a mirror."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.commands.options import bootstrap_and_broker_config_options, json_option, timeout_option

if TYPE_CHECKING:
    from barnabas.clients.admin.admin import Admin
    from barnabas.protocol.messages.cluster.mirrors import MirrorDescription


@click.command()
@click.argument("name")
@click.option("--source", "sources", multiple=True, metavar="HOST:PORT", help="A broker of the source. Repeatable.")
@click.option("--topics", multiple=True, metavar="PATTERN", help="Topics to copy, instead of the present patterns.")
@click.option("--groups", multiple=True, metavar="PATTERN", help="Groups to follow, instead of the present patterns.")
@click.option("--no-groups", is_flag=True, help="Follow no groups any more.")
@click.option(
    "--command-config", metavar="FILE", help="Client properties for the source, a path on the broker's machine."
)
@click.option("--no-command-config", is_flag=True, help="Reach the source without TLS and login.")
@click.option("--start", metavar="WHERE", help="Where the copy of a new topic begins: earliest, latest, or a time.")
@click.option(
    "--follow-configs/--no-follow-configs", default=None, help="Give the topics the configs of the source, or not."
)
@click.option("--max-bytes-per-second", type=click.IntRange(min=1), metavar="N", help="Limit of the received bytes.")
@click.option("--no-max-bytes-per-second", is_flag=True, help="Remove the limit of the received bytes.")
@click.option("--keep-cut/--no-keep-cut", default=None, help="Keep records in a file before they are cut, or not.")
@click.option(
    "--metadata-max-age-ms", type=click.IntRange(100, 3_600_000), help="Longest time between two looks at the source."
)
@json_option
@bootstrap_and_broker_config_options
@timeout_option
def alter(
    name: str,
    sources: tuple[str, ...],
    topics: tuple[str, ...],
    groups: tuple[str, ...],
    no_groups: bool,
    command_config: str | None,
    no_command_config: bool,
    start: str | None,
    follow_configs: bool | None,
    max_bytes_per_second: int | None,
    no_max_bytes_per_second: bool,
    keep_cut: bool | None,
    metadata_max_age_ms: int | None,
    as_json: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Change the definition of the mirror NAME; options that are not given stay as they are.

    The mirror starts again with its new definition and continues where its logs end. Mirrored topics that no pattern
    matches any more stay read-only and are not copied further. Topics that were deleted here are copied again.
    """
    from barnabas.commands.mirror.descriptions import as_object
    from barnabas.commands.output import print_json, print_line
    from barnabas.commands.session import with_admin

    for value, removed, option in (
        (groups, no_groups, "groups"),
        (command_config, no_command_config, "command-config"),
        (max_bytes_per_second, no_max_bytes_per_second, "max-bytes-per-second"),
    ):
        if value and removed:
            raise click.UsageError(f"--{option} and --no-{option} exclude each other")
    given: dict[str, Any] = {
        "bootstrap": [address.strip() for each in sources for address in each.split(",") if address.strip()] or None,
        "topics": list(topics) or None,
        "groups": list(groups) or None,
        "command_config": None if command_config is None else str(Path(command_config).absolute()),
        "start": start,
        "follow_configs": follow_configs,
        "max_bytes_per_second": max_bytes_per_second,
        "keep_cut": keep_cut,
        "metadata_max_age_ms": metadata_max_age_ms,
    }
    fields = {field: value for field, value in given.items() if value is not None}
    if no_groups:
        fields["groups"] = []
    if no_command_config:
        fields["command_config"] = None
    if no_max_bytes_per_second:
        fields["max_bytes_per_second"] = None
    if not fields:
        raise click.UsageError("no option names a change")

    async def work(admin: Admin) -> MirrorDescription:
        return await admin.mirrors.alter(name, **fields)

    altered = with_admin(bootstrap, timeout_s, work)
    if as_json:
        print_json(as_object(altered))
        return
    print_line(f"altered mirror {name}: {', '.join(sorted(fields))}")
