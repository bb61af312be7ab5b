"""The address that Metadata answers: that of the listener through which the client connected.

advertised.listeners sets it by listener name. Without a host there (a listener on every interface and no advertised
name) the answer is the local address of the client's own connection; port 0 stands for the port that was opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from barnabas.broker.network.session import Session
    from barnabas.config.listeners import Listener
    from barnabas.protocol.messages.nodes import BrokerAddress


class AdvertisedAddresses:
    """The broker's addresses by listener name."""

    def __init__(self, node_id: int, advertised: Mapping[str, Listener]) -> None:
        self._node_id = node_id
        self._advertised = advertised

    def address_for(self, session: Session) -> BrokerAddress:
        """Return the broker's address for a client of `session`."""
        from barnabas.protocol.messages.nodes import BrokerAddress  # with the first Metadata request

        listener = self._advertised[session.listener.name]
        return BrokerAddress(self._node_id, listener.host or session.local_host, listener.port or session.local_port)
