"""ClusterAccess: one user's connections to a cluster, and what was observed with them."""

from __future__ import annotations

import logging
from typing import Self

from barnabas.clients.admin.admin import Admin
from barnabas.clients.config import AdminConfig, ClientConfig
from barnabas.clients.errors import AuthenticationError, ClientError
from barnabas.clients.kafka.cluster import KafkaCluster
from barnabas.console.cluster.inspector import Inspector
from barnabas.console.cluster.observer import Observer

logger = logging.getLogger(__name__)


class ClusterAccess:
    """Open it by `open`, and `close` it. `admin` is None where the broker is not Barnabas."""

    def __init__(self, config: ClientConfig, kafka: KafkaCluster, admin: Admin | None, interval_s: float) -> None:
        self.config = config
        self.kafka = kafka
        self.admin = admin
        self.observer = Observer(kafka, admin, interval_s)
        self.inspector = Inspector(admin)

    @classmethod
    async def open(cls, config: ClientConfig, interval_s: float) -> Self:
        """Connect, log in, and find out whether the broker is Barnabas. Raises ClientError."""
        kafka = KafkaCluster(config)
        try:
            await kafka.metadata(())
            admin = await _native_admin(config)
        except BaseException:
            kafka.close()
            raise
        return cls(config, kafka, admin, interval_s)

    @property
    def is_barnabas(self) -> bool:
        """Whether the broker answers what only Barnabas has."""
        return self.admin is not None

    async def close(self) -> None:
        """End the observation and close the connections. Idempotent."""
        await self.observer.close()
        await self.inspector.close()
        self.kafka.close()
        if self.admin is not None:
            await self.admin.close()


async def _native_admin(config: ClientConfig) -> Admin | None:
    """Connect by the native dialect; None if the broker, which has answered Kafka's, does not speak it."""
    admin = Admin(
        AdminConfig(
            bootstrap=config.bootstrap,
            client_id=config.client_id,
            connect_timeout_ms=config.connect_timeout_ms,
            request_timeout_ms=config.request_timeout_ms,
            api_timeout_ms=config.api_timeout_ms,
            security=config.security,
        )
    )
    try:
        await admin.start()
    except AuthenticationError:
        await admin.close()
        raise
    except ClientError as error:
        await admin.close()
        logger.info("%s does not speak Barnabas' dialect; pages have what Kafka's protocol tells", config.bootstrap)
        logger.debug("the attempt: %s", error)
        return None
    return admin
