"""Mirrors: topics of another cluster that this broker copies, and their state.

    async with Admin(AdminConfig(bootstrap="127.0.0.1:9092")) as admin:
        await admin.mirrors.create("east", bootstrap=["east:9092"], topics=["orders.*"])
        print((await admin.mirrors.describe("east")).partitions)

Apache Kafka does not serve this API.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from barnabas.clients.admin.failback import follow_back, former_config
from barnabas.clients.errors import RefusedError, reason_of
from barnabas.clients.network.retrying import ask_any, command_any
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.cluster.mirrors import (
    MirrorAction,
    MirrorDescription,
    MirrorsRequest,
    MirrorsResponse,
    definition_fields,
)
from barnabas.protocol.mirrors.definition import DEFAULT_METADATA_MAX_AGE_MS, DesiredState
from barnabas.protocol.mirrors.promotion import Undecided

if TYPE_CHECKING:
    from barnabas.clients.admin.admin import Admin
    from barnabas.clients.config import AdminConfig, ClientConfig
    from barnabas.clients.network.cluster import Cluster
    from barnabas.clients.security.settings import SecuritySettings


class Mirrors:
    """The mirrors of a cluster. Every method raises RefusedError with the broker's error."""

    def __init__(self, cluster: Cluster, config: ClientConfig, new_admin: Callable[[AdminConfig], Admin]) -> None:
        """`new_admin` makes a client of another cluster."""
        self._cluster = cluster
        self._config = config
        self._new_admin = new_admin

    async def create(
        self,
        name: str,
        *,
        bootstrap: Iterable[str],
        topics: Iterable[str],
        groups: Iterable[str] = (),
        command_config: str | None = None,
        start: str = "earliest",
        follow_configs: bool = True,
        max_bytes_per_second: int | None = None,
        keep_cut: bool = False,
        take_existing: Iterable[str] = (),
        metadata_max_age_ms: int = DEFAULT_METADATA_MAX_AGE_MS,
        paused: bool = False,
    ) -> MirrorDescription:
        """Create a mirror, and start it unless `paused`.

        `bootstrap`: host:port of the source's brokers; `topics` and `groups`: regular expressions that match whole
        names; `command_config`: a file of Kafka client properties on the broker's machine, for TLS and a login at the
        source; `start`: earliest, latest, or a time as ISO 8601 or ms; `keep_cut`: keep records that are cut because
        the source has lost them; `take_existing`: names of existing topics that are taken, and what the source
        does not have is cut from them; `metadata_max_age_ms`: the longest time between two looks at the source's
        topics.
        """
        fields = {
            "bootstrap": list(bootstrap),
            "topics": list(topics),
            "groups": list(groups),
            "command_config": command_config,
            "start": start,
            "follow_configs": follow_configs,
            "max_bytes_per_second": max_bytes_per_second,
            "keep_cut": keep_cut,
            "take_existing": list(take_existing),
            "metadata_max_age_ms": metadata_max_age_ms,
            "desired": (DesiredState.PAUSED if paused else DesiredState.RUNNING).value,
        }
        response = await self._command(_request(MirrorAction.CREATE, name, fields))
        return response.mirrors[0]

    async def alter(self, name: str, **fields: Any) -> MirrorDescription:
        """Change some of the definition's fields: those of `create`, and `desired` (running, paused).

        Topics of the mirror that were deleted here are copied again.
        """
        plain = {key: value if isinstance(value, str) else _listed(value) for key, value in fields.items()}
        response = await self._command(_request(MirrorAction.ALTER, name, plain))
        return response.mirrors[0]

    async def pause(self, name: str) -> None:
        """Stop copying. The topics stay read-only."""
        await self.alter(name, desired=DesiredState.PAUSED.value)

    async def resume(self, name: str) -> None:
        """Copy again after `pause`; topics that were deleted here are created again."""
        await self.alter(name, desired=DesiredState.RUNNING.value)

    async def promote(
        self, name: str, topics: Iterable[str] = (), *, undecided: Undecided = Undecided.CUT
    ) -> MirrorDescription:
        """Begin to promote topics, by patterns that match whole names; without patterns all, and the mirror ends.

        The promotion goes on in the broker: `describe` has the states of the topics, `promoting`, then `promoted`, and
        then the partitions in `promoted`. `undecided`: what happens to a partition with an open transaction that
        nothing decides. Promoting again has no effect.
        """
        fields = {"topics": list(topics), "undecided": Undecided(undecided).value}
        response = await self._command(_request(MirrorAction.PROMOTE, name, fields))
        return response.mirrors[0]

    async def delete(self, name: str, *, release_topics: bool = False) -> list[str]:
        """Delete a mirror. With `release_topics` its read-only topics become writable as they are; return them."""
        request = MirrorsRequest(action=MirrorAction.DELETE, names=[name], releases_topics=release_topics)
        return list((await self._command(request)).released)

    async def failback(
        self,
        name: str,
        *,
        former: str | None = None,
        former_security: SecuritySettings | None = None,
        source: str | None = None,
        source_config: str | None = None,
    ) -> MirrorDescription:
        """Let the former source of a promoted mirror follow this cluster; return its mirror, of the same name.

        `former`: addresses of the former source, by default those of the definition; `former_security`: how this client
        logs in there, by default as here; `source`: addresses at which the former source reaches this cluster, by
        default those of this client; `source_config`: a file of client properties for this cluster on the former
        source's machine. Records that only the former source has are cut there, and kept in files. Raises FailbackError
        if it cannot follow.
        """
        mirror = await self.describe(name)
        there = former_config(self._config, mirror, former, former_security)
        return await follow_back(
            mirror,
            there,
            self._new_admin,
            source=source or self._config.bootstrap,
            source_config=source_config,
        )

    async def describe_all(self) -> list[MirrorDescription]:
        """Return all mirrors, ordered by name."""
        return await self._described([])

    async def describe(self, name: str) -> MirrorDescription:
        """Return one mirror with its topics and partitions."""
        (found,) = await self._described([name])
        return found

    async def _described(self, names: list[str]) -> list[MirrorDescription]:
        request = MirrorsRequest(action=MirrorAction.DESCRIBE, names=names)
        return list(_checked(await ask_any(self._cluster, self._config, request)).mirrors)

    async def _command(self, request: MirrorsRequest) -> MirrorsResponse:
        timeout_ms = self._config.request_timeout_ms
        return _checked(await command_any(self._cluster, self._config, request, timeout_ms))


def _request(action: MirrorAction, name: str, fields: Mapping[str, Any]) -> MirrorsRequest:
    return MirrorsRequest(action=action, names=[name], definition=definition_fields(fields))


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, Iterable) else value


def _checked(response: MirrorsResponse) -> MirrorsResponse:
    if response.error is not ErrorCode.NONE:
        raise RefusedError(response.error, response.message or reason_of(response.error))
    return response
