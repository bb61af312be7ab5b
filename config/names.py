"""Names that are not served properties: of the other scope, of Kafka, or misspelled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from barnabas.config import environment
from barnabas.config.errors import ConfigError
from barnabas.config.property import Property
from barnabas.config.tables.broker_properties import BROKER_PROPERTIES
from barnabas.config.tables.topic_properties import TOPIC_PROPERTIES

MAX_COMPARED_LENGTH = 200
"""Longest name that is compared with the real ones: a client may send a million characters."""


LISTENER_PREFIX = "listener.name."


def listener_prefix(listener: str) -> str:
    """Return the prefix of a listener's properties, as Kafka's ListenerName.configPrefix."""
    return f"{LISTENER_PREFIX}{listener.lower()}."


def served_property(name: str) -> Property | None:
    """Return the broker property of a name with or without a listener's prefix; None for one that is not served.

    The name of a listener may contain dots, so the end of `name` decides; whether there is a listener of that name is
    checked with the listeners.
    """
    known = BROKER_PROPERTIES.get(name)
    if known is not None or not name.startswith(LISTENER_PREFIX):
        return known
    known = next((BROKER_PROPERTIES[end] for end in _ends(name) if end in BROKER_PROPERTIES), None)
    return known if known is not None and known.per_listener else None


def is_unserved(name: str) -> bool:
    """Return whether a broker property of Kafka 3.7 to 4.3 is accepted without effect."""
    from barnabas.config.tables import unserved

    if name.startswith(LISTENER_PREFIX):
        return any(end in BROKER_PROPERTIES or unserved.is_unserved(end) for end in _ends(name))
    return unserved.is_unserved(name)


def is_unserved_topic(name: str) -> bool:
    """Return whether a topic property of Kafka 3.7 to 4.3 is accepted without effect."""
    from barnabas.config.tables import unserved

    return name in unserved.UNSERVED_TOPIC_PROPERTIES


def removed_topic_property(name: str, origin: str) -> ConfigError | None:
    """Return the error for a topic property that Kafka 4.3 does not have any more and refuses; None for another."""
    from barnabas.config.tables import unserved

    versions = unserved.UNSERVED_TOPIC_PROPERTIES[name]
    if versions.endswith("4.3"):
        return None
    return ConfigError(f"{name} in {origin}: Apache Kafka had it in {versions} and has removed it")


def property_of_variable(variable: str) -> str | None:
    """Return the property of an environment variable, served or not; None for another variable."""
    served = _served_by_variable().get(variable)
    if served is not None:
        return served
    from barnabas.config.tables import unserved

    for name in unserved.UNSERVED_PROPERTIES:
        if environment.variable_of(name) == variable:
            return name
    guess = variable.removeprefix(environment.PREFIX).lower().replace("_", ".")
    if guess.startswith(LISTENER_PREFIX):
        return guess.replace(".scram.sha.", ".scram-sha-")
    return guess if guess.startswith(unserved.UNSERVED_PREFIXES) else None


def unknown_property(name: str, origin: str) -> ConfigError:
    """Return the error for an unknown broker property."""
    topic_property = TOPIC_PROPERTIES.get(name)
    if topic_property is not None and topic_property.synonyms:
        synonym = topic_property.synonyms[0].name
        return ConfigError(f"{name} in {origin}: a property of topics; the broker's is {synonym}")
    from barnabas.config.tables import unserved

    if name.startswith(LISTENER_PREFIX):
        nearest = _nearest_of_listener(name)
    else:
        nearest = nearest_name(name, [*BROKER_PROPERTIES, *unserved.UNSERVED_PROPERTIES])
    return ConfigError(f"{name} in {origin}: no such property{_hint(nearest)}")


def unknown_topic_property(name: str, origin: str) -> ConfigError:
    """Return the error for an unknown topic property."""
    broker_property = BROKER_PROPERTIES.get(name)
    if broker_property is not None:
        topic_name = broker_property.topic_name
        what = "a property of the broker" + (f"; the topic's is {topic_name}" if topic_name else ", which topics lack")
        return ConfigError(f"{name} in {origin}: {what}")
    from barnabas.config.tables import unserved

    nearest = nearest_name(name, [*TOPIC_PROPERTIES, *unserved.UNSERVED_TOPIC_PROPERTIES])
    return ConfigError(f"{name} in {origin}: topics have no such property{_hint(nearest)}")


def unknown_variable(variable: str) -> ConfigError:
    """Return the error for an unknown BARNABAS_ variable."""
    from barnabas.config.tables import unserved

    names = {environment.variable_of(name): name for name in (*unserved.UNSERVED_PROPERTIES, *BROKER_PROPERTIES)}
    nearest = nearest_name(variable, [*names, *environment.RESERVED])
    meant = f"{nearest} ({names[nearest]})" if nearest in names else nearest
    return ConfigError(f"{variable} in the environment: no such property{_hint(meant)}")


def nearest_name(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that a misspelled name probably means."""
    if len(name) > MAX_COMPARED_LENGTH:
        return None
    from difflib import get_close_matches

    # difflib is case-sensitive, but a name in the wrong case is the nearest of all.
    by_lower = {candidate.lower(): candidate for candidate in candidates}
    found = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def _served_by_variable() -> dict[str, str]:
    return {environment.variable_of(name): name for name in BROKER_PROPERTIES}


def _ends(name: str) -> Iterator[str]:
    """Yield the ends of a name with a listener's prefix that may be the property, the longest first."""
    end = name.removeprefix(LISTENER_PREFIX)
    while "." in end:
        end = end.partition(".")[2]
        yield end


def _nearest_of_listener(name: str) -> str | None:
    """Return the name with its last part corrected, assuming a listener whose name has no dot."""
    listener, _, rest = name.removeprefix(LISTENER_PREFIX).partition(".")
    nearest = nearest_name(rest, [each.name for each in BROKER_PROPERTIES.values() if each.per_listener])
    return None if nearest is None else f"{LISTENER_PREFIX}{listener}.{nearest}"


def _hint(nearest: str | None) -> str:
    return f"; did you mean {nearest}?" if nearest else "; `barnabas config list` shows them all"
