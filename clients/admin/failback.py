"""Failback: the former source of a promoted mirror follows this cluster.

The former source gets a mirror of the same name in the other direction, which takes its existing topics. They are cut
to the records that both have, by the batches' checksums, and kept up to date from there; promoting that mirror leads
back. Topics that have another id than the mirrored ones are not touched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.clients.config import AdminConfig, ClientConfig
from barnabas.clients.errors import FailbackError, RefusedError
from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.clients.admin.admin import Admin
    from barnabas.clients.security.settings import SecuritySettings
    from barnabas.protocol.messages.cluster.mirrors import MirrorDescription


def former_config(
    here: ClientConfig, mirror: MirrorDescription, former: str | None, security: SecuritySettings | None
) -> AdminConfig:
    """Return how the former source is reached: like this cluster, at the addresses of the definition."""
    return AdminConfig(
        bootstrap=former or ",".join(mirror.fields["bootstrap"]),
        client_id=here.client_id,
        security=here.security if security is None else security,
        connect_timeout_ms=here.connect_timeout_ms,
        request_timeout_ms=here.request_timeout_ms,
        api_timeout_ms=here.api_timeout_ms,
    )


async def follow_back(
    mirror: MirrorDescription,
    former: AdminConfig,
    new_admin: Callable[[AdminConfig], Admin],
    *,
    source: str,
    source_config: str | None,
) -> MirrorDescription:
    """Let the cluster of `former` follow the one at `source`; return its new mirror. `new_admin` makes its client.

    Raises FailbackError, ClientError.
    """
    if mirror.state != "promoted":
        raise FailbackError(
            f"mirror {mirror.name} is {mirror.state}: only a promoted mirror has a former source; "
            f"`barnabas mirror promote {mirror.name}` promotes all of its topics"
        )
    await _ensure_barnabas(former, new_admin)
    async with new_admin(former) as there:
        topics = await _mirrored_topics(there, mirror)
        await _forget_promoted(there, mirror.name)
        return await there.mirrors.create(
            mirror.name,
            bootstrap=source.split(","),
            topics=mirror.fields["topics"],
            groups=mirror.fields.get("groups", ()),
            command_config=source_config,
            follow_configs=bool(mirror.fields.get("follow_configs", True)),
            keep_cut=True,
            take_existing=topics,
        )


async def _ensure_barnabas(former: AdminConfig, new_admin: Callable[[AdminConfig], Admin]) -> None:
    """Raise FailbackError if another broker than Barnabas answers, BrokerConnectionError if none does."""
    try:
        async with new_admin(former) as admin:
            await admin.mirrors.describe_all()
    except RefusedError as error:
        if error.code is not ErrorCode.UNSUPPORTED_VERSION:
            raise
        raise FailbackError(
            f"{former.bootstrap} is not a Barnabas: Apache Kafka cannot follow another cluster. Stop Kafka and start "
            "Barnabas on its directories, which keeps their records, then repeat this command; or delete its topics "
            "and copy them back with other tools"
        ) from error


async def _mirrored_topics(there: Admin, mirror: MirrorDescription) -> list[str]:
    """Return the topics that the former source has. Raises FailbackError if one is not the topic that was mirrored."""
    ids = {each.name: each.topic_id for each in await there.list_topics()}
    found = [each for each in mirror.topics if each.state == "promoted" and each.topic in ids]
    others = sorted(each.topic for each in found if each.source_id not in (None, ids[each.topic]))
    if others:
        raise FailbackError(
            f"{', '.join(others)} was deleted and created again at the former source, and would lose its records: "
            "delete it there"
        )
    return [each.topic for each in found]


async def _forget_promoted(there: Admin, name: str) -> None:
    """Delete the former source's own mirror of this name, which an earlier failback has promoted."""
    for each in await there.mirrors.describe_all():
        if each.name != name:
            continue
        if each.state != "promoted":
            raise FailbackError(f"the former source has a mirror {name} already, state {each.state}")
        await there.mirrors.delete(name)
