"""Names of security properties: those that Kafka does not know either are refused, as a misspelled one has no effect.

Kafka's clients only warn about unknown names. But a client without its trust store or its login fails for reasons that
do not name the property.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from barnabas.clients.errors import ClientConfigError

_PREFIXES: Final = ("security.", "sasl.", "ssl.")
_KAFKA_CLIENTS: Final = frozenset({"sasl.oauthbearer.header.urlencode"})
"""Names that the tables of broker properties lack."""


def ensure_known(names: Iterable[str], served: frozenset[str]) -> None:
    """Raise ClientConfigError for a name with a prefix of security that is neither `served` nor known to Kafka.

    The broker's names are accepted, and ignored: a program may pass the properties of a whole file.
    """
    unserved = [name for name in names if name.lower().startswith(_PREFIXES) and name not in served]
    if not unserved:
        return
    from barnabas.config.names import nearest_name
    from barnabas.config.tables.broker_properties import BROKER_PROPERTIES
    from barnabas.config.tables.unserved import UNSERVED_PROPERTIES

    for name in unserved:
        if name not in BROKER_PROPERTIES and name not in UNSERVED_PROPERTIES and name not in _KAFKA_CLIENTS:
            meant = nearest_name(name, served)
            hint = "" if meant is None else f"; did you mean {meant}?"
            raise ClientConfigError(f"{name}: clients have no such property{hint}")
