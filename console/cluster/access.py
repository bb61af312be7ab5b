"""ClusterAccess: one user's connections to a cluster, and what was observed with them."""

from __future__ import annotations

from dataclasses import fields
from typing import Self

from barnabas.clients.admin.admin import Admin
from barnabas.clients.config import AdminConfig, ClientConfig
from barnabas.console.cluster.inspector import Inspector
from barnabas.console.cluster.observer import Observer
from barnabas.protocol.messages.api_key import ApiKey


class ClusterAccess:
    """Open it by `open`, and `close` it. `is_barnabas`: whether the broker serves the APIs that only Barnabas has."""

    def __init__(self, config: ClientConfig, admin: Admin, interval_s: float, *, is_barnabas: bool) -> None:
        self.config = config
        self.admin = admin
        self.kafka = admin.cluster
        self.is_barnabas = is_barnabas
        self.observer = Observer(self.kafka, interval_s, is_barnabas=is_barnabas)
        self.inspector = Inspector(admin if is_barnabas else None)

    @classmethod
    async def open(cls, config: ClientConfig, interval_s: float) -> Self:
        """Connect, log in, and find out whether the broker is Barnabas. Raises ClientError."""
        admin = Admin(AdminConfig(**{each.name: getattr(config, each.name) for each in fields(config)}))
        try:
            await admin.start()
            connection = await admin.cluster.connections.any_connection()
        except BaseException:
            await admin.close()
            raise
        return cls(config, admin, interval_s, is_barnabas=connection.version_of(ApiKey.EXPLAIN_START) is not None)

    async def close(self) -> None:
        """End the observation and close the connections. Idempotent."""
        await self.observer.close()
        await self.inspector.close()
        await self.admin.close()
