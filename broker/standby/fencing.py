"""Fencing: a broker that has taken over stops the broker that it replaced, whenever that one comes back.

After an unplanned takeover the old active broker knows nothing of it, and would serve if it were started again. The new
one asks at its addresses every second, and a broker of the same cluster with a lower number is told to retire. Where
the network between both is cut this cannot work: two nodes have no quorum.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from barnabas.broker.standby.active_broker import ActiveBroker
from barnabas.clients.errors import ClientError

if TYPE_CHECKING:
    from barnabas.clients.config import ClientConfig

logger = logging.getLogger(__name__)

_INTERVAL_SECONDS: Final = 1.0
_CONNECT_TIMEOUT_MS: Final = 2000


async def fence_replaced_brokers(client: ClientConfig, cluster_id: str, number: int) -> None:
    """Retire brokers at the addresses of `client` that have a lower number than `number`, until cancelled."""
    config = replace(client, connect_timeout_ms=_CONNECT_TIMEOUT_MS)
    refusals: set[str] = set()
    while True:
        for address in config.bootstrap.split(","):
            try:
                await _fence(replace(config, bootstrap=address.strip()), cluster_id, number)
            except ClientError as error:
                # Unreachable is the usual case. A refused login is not: then the old broker could not be stopped.
                if not isinstance(error, ConnectionError) and str(error) not in refusals:
                    refusals.add(str(error))
                    logger.error("the replaced broker at %s cannot be stopped: %s", address, error)
            except Exception as error:
                if repr(error) not in refusals:
                    refusals.add(repr(error))
                    logger.exception("a bug while looking for the replaced broker at %s", address)
        await asyncio.sleep(_INTERVAL_SECONDS)


async def _fence(client: ClientConfig, cluster_id: str, number: int) -> None:
    """Retire the broker at one address if it was replaced. Raises ClientError."""
    replaced = await ActiveBroker.connect(client)
    try:
        identity = await replaced.identify()
        if identity.cluster_id == cluster_id and identity.number < number:
            await replaced.fence(number)
            logger.warning("stopped the replaced broker at %s: its number was %d", client.bootstrap, identity.number)
    finally:
        replaced.close()
