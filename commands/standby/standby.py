"""`barnabas standby`: run a standby of a broker; show its state; let it take over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from barnabas.commands.options import client_security, command_config_option, json_option
from barnabas.commands.serve import broker_options
from barnabas.commands.serve_arguments import ServeArguments
from barnabas.commands.serving import serve_broker

_data_option = click.option(
    "--data",
    "data",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    metavar="DIR",
    help="The standby's metadata log directory: DIR of `barnabas standby --data DIR`.",
)


@click.group(invoke_without_command=True)
@click.option("--of", "active", metavar="HOST:PORT", help="The active broker. Several, separated by commas, are tried.")
@click.option(
    "--data",
    "data",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Directory of the copy, instead of log.dirs in the configuration. Empty, or a standby's.",
)
@command_config_option
@broker_options
@click.pass_context
def standby(ctx: click.Context, /, active: str | None, data: Path | None, **options: Any) -> int | None:
    """Copy a broker, ready to take over: its records, topics, groups' offsets, users, ACLs, quotas and transactions.

    The standby copies the directories of the active broker byte for byte. Its client listeners, those of the broker's
    configuration, are closed until it is promoted with `barnabas standby promote`. Its login at the active broker,
    --command-config, needs CLUSTER_ACTION and ALTER on the cluster.
    """
    if ctx.invoked_subcommand is not None:
        return None
    if active is None:
        raise click.UsageError("--of HOST:PORT names the active broker; or use a command: status, promote")
    from barnabas.clients.config import ClientConfig

    client = ClientConfig(bootstrap=active, client_id="barnabas-standby", security=client_security())
    if data is not None:
        options["overrides"] = (*options["overrides"], f"log.dirs={data.absolute()}")

    def run(config: Any, ready_file: Path | None) -> int:
        from barnabas.broker.standby.process import run as run_standby

        return run_standby(config, client, ready_file)

    return serve_broker(ServeArguments(**options), run)


@standby.command()
@_data_option
@json_option
def status(data: Path, as_json: bool) -> None:
    """Show whether the standby is caught up, and the lag of every partition."""
    from barnabas.commands.output import print_json, print_line, print_table
    from barnabas.commands.standby.control_client import ask

    found = ask(data, {"command": "status"})
    if as_json:
        print_json(found)
        return
    if found["active"] is None:
        print_line(f"active, switch number {found['number']}")
        return
    metadata = found["metadata"]
    print_line(f"standby of {found['active']}: {found['state']}, switch number {found['number']}")
    if found["error"] is not None:
        print_line(f"  error: {found['error']}")
    print_line(f"  metadata: offset {metadata['offset']} of {metadata['source_offset']}")
    if found["seconds_since_fetch"] is not None:
        print_line(f"  last answer to a fetch: {found['seconds_since_fetch']:.1f} s ago")
    print_line("")
    print_table(
        ["topic", "partition", "state", "offset", "source offset", "lag records", "lag seconds"],
        [
            [
                each["topic"],
                each["partition"],
                each["state"] if each["error"] is None else f"{each['state']}: {each['error']}",
                each["offset"],
                each["source_offset"],
                "" if each["lag_records"] is None else each["lag_records"],
                "" if each["lag_seconds"] is None else f"{each['lag_seconds']:.1f}",
            ]
            for each in found["partitions"]
        ],
    )


@standby.command()
@_data_option
@click.option(
    "--planned",
    is_flag=True,
    help="Let the active broker stop accepting writes, copy its last bytes, and stop it: nothing is lost.",
)
@json_option
def promote(data: Path, planned: bool, as_json: bool) -> None:
    """Let the standby take over.

    Without --planned the active broker is not asked: it must be stopped, or clients could write to both. Records that
    were not copied are lost; `barnabas standby status` shows how many.
    """
    from barnabas.commands.output import print_json, print_line
    from barnabas.commands.standby.control_client import ask
    from barnabas.explanation.wording import counted

    found = ask(data, {"command": "promote", "planned": planned})
    if as_json:
        print_json(found)
        return
    print_line(f"took over in {found['seconds']:.2f} s, switch number {found['number']}")
    if not planned:
        count = found["unknown_partitions"]
        unknown = f", and unknown for {counted(count, 'partition')}" if count else ""
        print_line(
            f"the known lag was {counted(found['lag_records'], 'record')}{unknown}; do not start the old active broker "
            "with `barnabas serve` again: make it a standby with `barnabas standby --of HOST:PORT`"
        )
