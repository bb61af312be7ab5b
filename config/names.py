"""What to say about a name that is no property: of the other scope, of Kafka, or a slip of the keyboard."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.config import environment
from barnabas.config.errors import ConfigError
from barnabas.config.tables.broker_properties import BROKER_PROPERTIES
from barnabas.config.tables.topic_properties import TOPIC_PROPERTIES

MAX_COMPARED_LENGTH = 200
"""Of a name that is looked for among the real ones: anybody on the network may send one of a million characters."""


def is_unserved(name: str) -> bool:
    """True for a broker property of Kafka 3.7 to 4.3 that is accepted without effect."""
    from barnabas.config.tables import unserved

    return unserved.is_unserved(name)


def is_unserved_topic(name: str) -> bool:
    """True for a topic property of Kafka 3.7 to 4.3 that is accepted without effect."""
    from barnabas.config.tables import unserved

    return name in unserved.UNSERVED_TOPIC_PROPERTIES


def property_of_variable(variable: str) -> str | None:
    """The property that an environment variable names, served or not; None when it names none."""
    served = _served_by_variable().get(variable)
    if served is not None:
        return served
    from barnabas.config.tables import unserved

    for name in unserved.UNSERVED_PROPERTIES:
        if environment.variable_of(name) == variable:
            return name
    guess = variable.removeprefix(environment.PREFIX).lower().replace("_", ".")
    return guess if guess.startswith(unserved.UNSERVED_PREFIXES) else None


def unknown_property(name: str, origin: str) -> ConfigError:
    """The refusal of a broker property that does not exist."""
    topic_property = TOPIC_PROPERTIES.get(name)
    if topic_property is not None and topic_property.synonyms:
        synonym = topic_property.synonyms[0].name
        return ConfigError(f"{name} in {origin}: a property of topics; the broker's is {synonym}")
    from barnabas.config.tables import unserved

    nearest = _nearest(name, [*BROKER_PROPERTIES, *unserved.UNSERVED_PROPERTIES])
    return ConfigError(f"{name} in {origin}: no such property{_hint(nearest)}")


def unknown_topic_property(name: str, origin: str) -> ConfigError:
    """The refusal of a topic property that does not exist."""
    broker_property = BROKER_PROPERTIES.get(name)
    if broker_property is not None:
        topic_name = broker_property.topic_name
        what = "a property of the broker" + (f"; the topic's is {topic_name}" if topic_name else ", which topics lack")
        return ConfigError(f"{name} in {origin}: {what}")
    from barnabas.config.tables import unserved

    nearest = _nearest(name, [*TOPIC_PROPERTIES, *unserved.UNSERVED_TOPIC_PROPERTIES])
    return ConfigError(f"{name} in {origin}: topics have no such property{_hint(nearest)}")


def unknown_variable(variable: str) -> ConfigError:
    """The refusal of a BARNABAS_ variable that names no property."""
    from barnabas.config.tables import unserved

    names = {environment.variable_of(name): name for name in (*unserved.UNSERVED_PROPERTIES, *BROKER_PROPERTIES)}
    nearest = _nearest(variable, [*names, *environment.RESERVED])
    meant = f"{nearest} ({names[nearest]})" if nearest in names else nearest
    return ConfigError(f"{variable} in the environment: no such property{_hint(meant)}")


def _served_by_variable() -> dict[str, str]:
    return {environment.variable_of(name): name for name in BROKER_PROPERTIES}


def _nearest(name: str, candidates: Iterable[str]) -> str | None:
    if len(name) > MAX_COMPARED_LENGTH:
        return None
    from difflib import get_close_matches

    # A name in the wrong case is the nearest of all, which difflib does not see.
    by_lower = {candidate.lower(): candidate for candidate in candidates}
    found = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def _hint(nearest: str | None) -> str:
    return f"; did you mean {nearest}?" if nearest else "; `barnabas config list` shows them all"
