"""ClusterAccess: one user's connections to a cluster, and what was observed with them."""

from __future__ import annotations

from dataclasses import fields
from typing import Self

from barnabas.clients.admin.admin import Admin
from barnabas.clients.config import AdminConfig, ClientConfig
from barnabas.clients.network.cluster import Cluster
from barnabas.console.cluster.inspector import Inspector
from barnabas.console.cluster.observer import Observer
from barnabas.protocol.messages.api_key import ApiKey


class ClusterAccess:
    """Open it by `open`, and `close` it. `admin` is None where the broker is not Barnabas."""

    def __init__(self, config: ClientConfig, kafka: Cluster, admin: Admin | None, interval_s: float) -> None:
        self.config = config
        self.kafka = kafka
        self.admin = admin
        self.observer = Observer(kafka, interval_s, is_barnabas=admin is not None)
        self.inspector = Inspector(admin)

    @classmethod
    async def open(cls, config: ClientConfig, interval_s: float) -> Self:
        """Connect, log in, and find out whether the broker is Barnabas. Raises ClientError."""
        kafka = Cluster(config)
        admin = None
        try:
            await kafka.load(())
            if (await kafka.connections.any_connection()).version_of(ApiKey.EXPLAIN_START) is not None:
                admin = Admin(AdminConfig(**{each.name: getattr(config, each.name) for each in fields(config)}))
                await admin.start()
        except BaseException:
            await kafka.close()
            if admin is not None:
                await admin.close()
            raise
        return cls(config, kafka, admin, interval_s)

    @property
    def is_barnabas(self) -> bool:
        """Whether the broker serves the APIs that only Barnabas has."""
        return self.admin is not None

    async def close(self) -> None:
        """End the observation and close the connections. Idempotent."""
        await self.observer.close()
        await self.inspector.close()
        await self.kafka.close()
        if self.admin is not None:
            await self.admin.close()
