"""What a broker asks its standby before it serves: whether that one has taken over from it.

After an unplanned takeover the directory of the old active broker does not show it. The broker that took over stops it
as soon as it finds it (fencing.py); asking first closes the moments in between, in which it would accept writes. Where
the standby cannot be reached nobody knows: two nodes have no quorum, and the broker serves, with a warning.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from barnabas.broker.metadata.directories.meta_properties import read_meta_properties
from barnabas.broker.metadata.directories.standby_state import read_state
from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.standby.active_broker import ActiveBroker
from barnabas.broker.startup_error import StartupError
from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import BrokerConnectionError, BrokerTimeoutError, ClientError
from barnabas.clients.security.settings import PLAINTEXT_SETTINGS, SecuritySettings

if TYPE_CHECKING:
    from barnabas.config import BrokerConfig
    from barnabas.protocol.messages.cluster.standby import StandbyIdentity

logger = logging.getLogger(__name__)

_TIMEOUT_MS: Final = 2000
"""For a connection, and for an answer."""


async def ensure_not_replaced(config: BrokerConfig) -> None:
    """Ask each address of `standby.bootstrap.servers`; return if none says that it has taken over from this broker.

    Raises StartupError if one has, or refuses to say.
    """
    directory = config.metadata_log_dir
    try:
        properties, number = read_meta_properties(directory), read_state(directory).number
        path = config.get("standby.command.config")
        security = PLAINTEXT_SETTINGS if path is None else SecuritySettings.from_file(str(path))
    except (MetadataError, ClientError, OSError) as error:
        raise StartupError(str(error)) from error
    if properties is None:  # a new directory: nobody can have taken over from it
        return
    for address in config.get_list("standby.bootstrap.servers"):
        client = ClientConfig(
            bootstrap=address,
            client_id="barnabas-active",
            connect_timeout_ms=_TIMEOUT_MS,
            request_timeout_ms=_TIMEOUT_MS,
            security=security,
        )
        try:
            identity = await _identify(client)
        except (BrokerConnectionError, BrokerTimeoutError) as error:
            logger.warning("the standby does not say whether it has taken over, serving: %s", error)
            continue
        except ClientError as error:
            raise StartupError(
                f"{address} serves, but does not say whether it has taken over from this broker: {error}; give its "
                "login in standby.command.config, or correct standby.bootstrap.servers"
            ) from error
        if identity.cluster_id != properties.cluster_id:
            raise StartupError(
                f"{address} in standby.bootstrap.servers is no standby of this broker: its cluster is "
                f"{identity.cluster_id}, that of {directory} {properties.cluster_id}"
            )
        if identity.number > number:
            raise StartupError(
                f"the standby at {address} has taken over from this broker (its switch number is {identity.number}, "
                f"that of {directory} {number}): run this one as its standby with "
                f"`barnabas standby --of {address} --data {directory}`"
            )


async def _identify(client: ClientConfig) -> StandbyIdentity:
    standby = await ActiveBroker.connect(client)
    try:
        return await standby.identify()
    finally:
        standby.close()
