"""ConsoleSettings: how the console is started."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.clients.addresses import Address
from barnabas.clients.config import ClientConfig

DEFAULT_ADDRESS = Address("127.0.0.1", 8080)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSettings:
    """`client`: how the console itself connects.

    `sign_in_mechanism`: with it, people sign in with a user of the broker by this SASL mechanism; the console then has
    no rights of its own, and each page is made with those of the user. Without it, and without a login in `client`, the
    cluster is asked whether one is needed.
    """

    client: ClientConfig
    address: Address = DEFAULT_ADDRESS
    sign_in_mechanism: str | None = None
    allows_changes: bool = False
    """Whether pages have forms that change something. The broker's ACLs hold besides."""
    schema_registry: str | None = None
    """URL of a schema registry, for records in Avro and Protobuf. It may contain a password."""
    observation_interval_s: float = 5.0
    """How often sizes and rates are taken."""
