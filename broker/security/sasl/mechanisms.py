"""The SASL mechanisms of one listener, by name. A mechanism is a function that begins an exchange."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from barnabas.protocol.sasl.exchange import SaslServer


class Mechanism(NamedTuple):
    """`begin` returns the server side of a new exchange. `max_reauth_ms` is connections.max.reauth.ms; 0: no limit."""

    begin: Callable[[], SaslServer]
    max_reauth_ms: Callable[[], int]


Mechanisms = Mapping[str, Mechanism]
"""By name, in the order of sasl.enabled.mechanisms."""
