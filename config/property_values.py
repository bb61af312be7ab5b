"""The served broker properties with their values, layer by layer. Immutable.

Layers, the later wins: default < file < environment < --set (these three are Kafka's STATIC_BROKER_CONFIG) < dynamic
default (all brokers) < dynamic broker. Within a family the finest unit that is set in any layer wins, as in Kafka:
log.retention.ms in the file beats log.retention.hours in --set. That surprises, so the loser is warned about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from barnabas.config import names
from barnabas.config.errors import ConfigError
from barnabas.config.property import BadValueError, Property, show
from barnabas.config.security.providers import PREFIX
from barnabas.config.security.secret import Secret
from barnabas.config.tables.broker_properties import BROKER_PROPERTIES
from barnabas.config.value import ConfigSource, ConfigValue, PropertyValue, Setting, trim

DEFAULT_ORIGIN = "default"


class PropertyValues:
    """Values by property name, each with its layer and origin."""

    __slots__ = ("_layers", "_unserved", "_values")

    def __init__(
        self,
        static: Mapping[str, Setting],
        dynamic_default: Mapping[str, Setting],
        dynamic_broker: Mapping[str, Setting],
    ) -> None:
        """Raises ConfigError for an unknown name or a bad value. References in the settings are resolved already."""
        self._values: dict[str, ConfigValue] = dict(_DEFAULTS)
        self._layers: dict[str, tuple[ConfigValue, ...]] = {}
        self._unserved: dict[str, ConfigValue] = {}
        for settings, source in (
            (static, ConfigSource.STATIC_BROKER_CONFIG),
            (dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
            (dynamic_broker, ConfigSource.DYNAMIC_BROKER_CONFIG),
        ):
            for name, setting in settings.items():
                self._set(name, setting, source)

    def value(self, name: str) -> ConfigValue:
        """Return value, text, layer and origin of a served property. Raises KeyError for another name."""
        return self._values[name]

    def layers(self, name: str) -> tuple[ConfigValue, ...]:
        """Return every layer that sets the property, the effective one first, the default last unless it is null.

        A property without effect here has the layers that were set, and their texts as values.
        """
        default = _DEFAULTS.get(name)
        return self._layers.get(name, ()) + (() if default is None or default.value is None else (default,))

    def default(self, name: str) -> PropertyValue:
        """Return the default of a property. Raises KeyError for a name that is not served."""
        return _DEFAULTS[name].value

    def get(self, name: str) -> PropertyValue:
        """Return the value; None if it is unset and has no default. Raises KeyError for a name that is not served."""
        return self._values[name].value

    def get_int(self, name: str) -> int:
        """Return the value of an int, short or long that is set or has a default."""
        value = self._values[name].value
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} is not an integer: {value!r}")
        return value

    def get_float(self, name: str) -> float:
        """Return the value of a double that is set or has a default."""
        value = self._values[name].value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError(f"{name} is not a double: {value!r}")
        return float(value)

    def get_bool(self, name: str) -> bool:
        """Return the value of a boolean."""
        value = self._values[name].value
        if not isinstance(value, bool):
            raise TypeError(f"{name} is not a boolean: {value!r}")
        return value

    def get_str(self, name: str) -> str:
        """Return the value of a string that is set or has a default."""
        value = self._values[name].value
        if not isinstance(value, str):
            raise TypeError(f"{name} is not a string: {value!r}")
        return value

    def get_list(self, name: str) -> tuple[str, ...]:
        """Return the value of a list that is set or has a default."""
        value = self._values[name].value
        if not isinstance(value, tuple):
            raise TypeError(f"{name} is not a list: {value!r}")
        return value

    def get_secret(self, name: str) -> Secret | None:
        """Return the value of a password; None if it is not set."""
        value = self._values[name].value
        if value is not None and not isinstance(value, Secret):
            raise TypeError(f"{name} is not a password")
        return value

    def is_set(self, name: str) -> bool:
        """Return whether any layer sets the property, which may have a listener's prefix."""
        value = self._values.get(name)
        return value is not None and not value.is_default

    def setting(self, name: str) -> str:
        """Return the property for a sentence: "log.roll.ms=5 in --set", "log.cleaner.threads=1 (default)".

        The value of a password is left out.
        """
        value = self._values[name]
        if value.is_default:
            return f"{name}={'' if value.text is None else value.text} (default)"
        return f"{name} in {value.origin}" if value.text is None else f"{name}={value.text} in {value.origin}"

    def topic_default(self, topic_property: Property) -> ConfigValue:
        """Return a topic property's default from the broker. A family is converted to the topic's unit."""
        for synonym in topic_property.synonyms:
            given = self._values[synonym.name]
            if given.value is None:
                continue
            if len(topic_property.synonyms) == 1:
                return given
            assert isinstance(given.value, int)
            milliseconds = given.value * synonym.factor
            if topic_property.name == "retention.ms" and milliseconds < 0:
                milliseconds = -1
            origin = DEFAULT_ORIGIN if given.is_default else self.setting(synonym.name)
            return ConfigValue(milliseconds, str(milliseconds), given.source, origin)
        default = topic_property.default
        return ConfigValue(default, topic_property.show(default), ConfigSource.DEFAULT_CONFIG, DEFAULT_ORIGIN)

    @property
    def unserved(self) -> Mapping[str, ConfigValue]:
        """Kafka's properties that were set and have no effect here. Some values are secrets: see unserved_configs."""
        return self._unserved

    def describe(self) -> list[tuple[Property, ConfigValue]]:
        """Return every served property with its value, in the order of the documents.

        Those that were set with a listener's prefix follow, under their full names.
        """
        plain = [(each, self._values[each.name]) for each in BROKER_PROPERTIES.values()]
        return plain + [(known._replace(name=name), value) for name, known, value in self.prefixed()]

    def prefixed(self) -> Iterator[tuple[str, Property, ConfigValue]]:
        """Yield the properties that were set with a listener's prefix: full name, property and value."""
        for name, value in self._values.items():
            if name not in BROKER_PROPERTIES:
                known = names.served_property(name)
                assert known is not None
                yield name, known, value

    def _set(self, name: str, setting: Setting, source: ConfigSource) -> None:
        known = names.served_property(name)
        if known is None:
            if name.startswith(PREFIX):
                return  # read by providers_of()
            if not names.is_unserved(name):
                raise names.unknown_property(name, setting.origin)
            self._unserved[name] = unserved = ConfigValue(setting.text, None, source, setting.origin)
            self._layers[name] = (unserved, *self._layers.get(name, ()))
            return
        value = parse_setting(known, setting, name)
        # A reference instead of its value: the key may be one of a password.
        text = None if known.is_sensitive else (setting.reference or trim(setting.text))
        self._values[name] = given = ConfigValue(value, text, source, setting.origin)
        self._layers[name] = (given, *self._layers.get(name, ()))


def parse_setting(known: Property, setting: Setting, name: str) -> PropertyValue:
    """Return the parsed and checked value; `name` may have a listener's prefix. Raises ConfigError."""
    shown = "" if known.is_sensitive else f"={setting.reference or setting.text}"
    try:
        return known.parse(setting.text)
    except BadValueError as error:
        # The fault may quote the text, and a reference to the wrong key may have brought a password.
        fault = error if setting.reference is None else "the value that it refers to does not fit the property"
        raise ConfigError(f"{name}{shown} in {setting.origin}: {fault}") from None


_DEFAULTS = {
    each.name: ConfigValue(each.default, show(each.default), ConfigSource.DEFAULT_CONFIG, DEFAULT_ORIGIN)
    for each in BROKER_PROPERTIES.values()
}
