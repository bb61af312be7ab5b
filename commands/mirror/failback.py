"""`barnabas mirror failback`: the former source of a promoted mirror follows this cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from barnabas.commands.options import bootstrap_option, json_option, timeout_option

if TYPE_CHECKING:
    from barnabas.clients.config import AdminConfig
    from barnabas.protocol.messages.cluster.mirrors import MirrorDescription


@click.command()
@click.argument("name")
@click.option(
    "--former",
    metavar="HOST:PORT",
    help="A broker of the former source. Default: the addresses in the mirror's definition.",
)
@click.option(
    "--former-config",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Client properties for TLS and a login at the former source. Default: those for this cluster.",
)
@click.option(
    "--source",
    metavar="HOST:PORT",
    help="Address at which the former source reaches this cluster. Default: --bootstrap.",
)
@click.option(
    "--source-config",
    metavar="FILE",
    help="Client properties for TLS and a login at this cluster, a path on the former source's machine.",
)
@json_option
@bootstrap_option
@timeout_option
def failback(
    name: str,
    former: str | None,
    former_config: str | None,
    source: str | None,
    source_config: str | None,
    as_json: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Let the former source of the promoted mirror NAME follow this cluster.

    The former source, a Barnabas that runs again without clients, gets a mirror NAME of this cluster. Records that were
    never copied here are cut from its topics and kept in files there. Once its lag is 0, stop the producers and run
    `barnabas mirror promote NAME` at the former source to return.

    Apache Kafka cannot follow: see docs/mirrors.md.
    """
    from barnabas.commands.mirror.descriptions import as_object
    from barnabas.commands.output import print_json, print_line
    from barnabas.commands.session import run_limited

    async def work(config: AdminConfig) -> MirrorDescription:
        from barnabas.clients.admin.admin import Admin
        from barnabas.clients.security.settings import SecuritySettings

        async with Admin(config) as here:
            return await here.mirrors.failback(
                name,
                former=former,
                former_security=None if former_config is None else SecuritySettings.from_file(former_config),
                source=source,
                source_config=source_config,
            )

    created = run_limited(bootstrap, timeout_s, work)
    if as_json:
        print_json(as_object(created))
        return
    print_line(
        f"the former source follows as mirror {name}; `barnabas mirror describe {name}` there shows its progress, "
        f"`barnabas mirror promote {name}` there returns"
    )
