"""Names of security properties: those that Kafka does not know either are refused, as a misspelled one has no effect.

Kafka's clients only warn about unknown names. But a client without its trust store or its login fails for reasons that
do not name the property.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from barnabas.clients.errors import ClientConfigError
from barnabas.config.environment import is_reserved, is_service_link, variable_of
from barnabas.config.names import nearest_name, property_of_variable
from barnabas.config.tables.broker_properties import BROKER_PROPERTIES

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
    from barnabas.config.tables.unserved import UNSERVED_PROPERTIES

    for name in unserved:
        if name not in BROKER_PROPERTIES and name not in UNSERVED_PROPERTIES and name not in _KAFKA_CLIENTS:
            meant = nearest_name(name, served)
            hint = "" if meant is None else f"; did you mean {meant}?"
            raise ClientConfigError(f"{name}: clients have no such property{hint}")


def ensure_known_variables(variables: Iterable[str], served: frozenset[str]) -> None:
    """Raise ClientConfigError for a BARNABAS_ variable of security that is neither a client's nor the broker's."""
    known = {variable_of(name) for name in served}
    prefixes = tuple(variable_of(prefix) for prefix in _PREFIXES)
    for variable in variables:
        if variable in known or not variable.startswith(prefixes) or is_reserved(variable):
            continue
        if property_of_variable(variable) is None and not is_service_link(variable):
            meant = nearest_name(variable, known)
            hint = "" if meant is None else f"; did you mean {meant}?"
            raise ClientConfigError(f"{variable} in the environment: clients have no such property{hint}")
