"""`barnabas mirror failback`: the former source of a promoted mirror follows this cluster.

The former source gets a mirror of the same name in the other direction, which takes its existing topics. They are cut
to the records that both have, by the batches' checksums, and kept up to date from there; promoting that mirror leads
back. Topics that have another id than the mirrored ones are not touched.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from barnabas.commands.options import bootstrap_option, json_option, timeout_option

if TYPE_CHECKING:
    from barnabas.clients.admin.admin import Admin
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
    from barnabas.commands.session import CLIENT_ID, run_limited, timeouts_ms

    async def work(config: AdminConfig) -> MirrorDescription:
        from barnabas.clients.admin.admin import Admin
        from barnabas.clients.config import AdminConfig
        from barnabas.clients.security.settings import SecuritySettings

        async with Admin(config) as here:
            mirror = _promoted(await here.mirrors.describe(name))
        security = config.security if former_config is None else SecuritySettings.from_file(former_config)
        there = AdminConfig(
            bootstrap=former or ",".join(mirror.fields["bootstrap"]),
            client_id=CLIENT_ID,
            security=security,
            **timeouts_ms(timeout_s),
        )
        await _ensure_barnabas(there)
        async with Admin(there) as admin:
            topics = await _mirrored_topics(admin, mirror)
            await _forget_promoted(admin, name)
            return await admin.mirrors.create(
                name,
                bootstrap=(source or bootstrap).split(","),
                topics=mirror.fields["topics"],
                groups=mirror.fields.get("groups", ()),
                command_config=source_config,
                follow_configs=bool(mirror.fields.get("follow_configs", True)),
                keep_cut=True,
                take_existing=topics,
            )

    created = run_limited(bootstrap, timeout_s, work)
    if as_json:
        print_json(as_object(created))
        return
    print_line(
        f"the former source follows as mirror {name}; `barnabas mirror describe {name}` there shows its progress, "
        f"`barnabas mirror promote {name}` there returns"
    )


def _promoted(mirror: MirrorDescription) -> MirrorDescription:
    """Return a mirror that is promoted as a whole. Raises CommandFailure for another one."""
    from barnabas.commands.failures import CommandFailure

    if mirror.state != "promoted":
        raise CommandFailure(
            f"mirror {mirror.name} is {mirror.state}: only a promoted mirror has a former source; "
            f"`barnabas mirror promote {mirror.name}` promotes all of its topics"
        )
    return mirror


async def _ensure_barnabas(there: AdminConfig) -> None:
    """Raise CommandFailure if another broker than Barnabas answers, or none."""
    from barnabas.clients.admin.admin import Admin
    from barnabas.clients.errors import BrokerConnectionError
    from barnabas.clients.kafka.cluster import KafkaCluster
    from barnabas.commands.failures import CommandFailure

    try:
        async with Admin(there) as admin:
            await admin.mirrors.describe_all()
            return
    except BrokerConnectionError as error:
        cluster = KafkaCluster(there)
        try:
            async with asyncio.timeout(there.connect_timeout_ms / 1000):
                await cluster.metadata([])
        except (BrokerConnectionError, TimeoutError):
            raise error from None
        finally:
            cluster.close()
        raise CommandFailure(
            f"{there.bootstrap} is not a Barnabas: Apache Kafka cannot follow another cluster. Stop Kafka and start "
            "Barnabas on its directories, which keeps their records, then repeat this command; or delete its topics "
            "and copy them back with other tools"
        ) from error


async def _mirrored_topics(there: Admin, mirror: MirrorDescription) -> list[str]:
    """Return the topics that the former source has. Raises CommandFailure if one is not the topic that was mirrored."""
    from barnabas.commands.failures import CommandFailure

    ids = {each.name: each.topic_id for each in await there.list_topics()}
    found = [each for each in mirror.topics if each.state == "promoted" and each.topic in ids]
    others = sorted(each.topic for each in found if each.source_id not in (None, ids[each.topic]))
    if others:
        raise CommandFailure(
            f"{', '.join(others)} was deleted and created again at the former source, and would lose its records: "
            "delete it there"
        )
    return [each.topic for each in found]


async def _forget_promoted(there: Admin, name: str) -> None:
    """Delete the former source's own mirror of this name, which an earlier failback has promoted."""
    from barnabas.commands.failures import CommandFailure

    for each in await there.mirrors.describe_all():
        if each.name != name:
            continue
        if each.state != "promoted":
            raise CommandFailure(f"the former source has a mirror {name} already, state {each.state}")
        await there.mirrors.delete(name)
