"""Which address Metadata tells a client: that of the listener it came in by.

advertised.listeners gives it by listener name. Where it leaves the host open (the listener is on every interface and
nobody advertised a name) the client is told the address at which it reached us; a port of 0 is the one that was opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.messages.topics.metadata import BrokerAddress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from barnabas.broker.network.session import Session
    from barnabas.config.listeners import Listener


class AdvertisedAddresses:
    """The broker's addresses by listener name."""

    def __init__(self, node_id: int, advertised: Mapping[str, Listener]) -> None:
        self._node_id = node_id
        self._advertised = advertised

    def address_for(self, session: Session) -> BrokerAddress:
        """What a client of that session is told."""
        listener = self._advertised[session.listener.name]
        return BrokerAddress(self._node_id, listener.host or session.local_host, listener.port or session.local_port)
