"""The broker's configuration: every served property with its value and where it came from. Immutable.

Layers, the later wins: default < file < environment < --set (these three are Kafka's STATIC_BROKER_CONFIG) < dynamic
default (all brokers) < dynamic broker. Within a family the finest unit that is set in any layer wins, as in Kafka:
log.retention.ms in the file beats log.retention.hours in --set. That surprises, so the loser is warned about.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.config import combinations, names
from barnabas.config.errors import ConfigError
from barnabas.config.listeners import Listener
from barnabas.config.property import PER_BROKER, BadValueError, Property, show
from barnabas.config.tables.broker_properties import BROKER_PROPERTIES
from barnabas.config.tables.topic_properties import TOPIC_PROPERTIES
from barnabas.config.value import ConfigSource, ConfigValue, PropertyValue, Setting

if TYPE_CHECKING:
    from barnabas.config.log_config import LogConfig

DEFAULT_ORIGIN = "default"
ALL_BROKERS_ORIGIN = "the dynamic config of all brokers"
THIS_BROKER_ORIGIN = "the dynamic config of this broker"


class BrokerConfig:
    """What the broker runs with. Made by loader.load() or BrokerConfig.of(); never changed.

    Single values: `get*` by name. What several properties decide together is an attribute: node_id, log_dirs,
    metadata_log_dir, listeners, advertised_listeners, metrics_listener, retention_ms, segment_ms, segment_jitter_ms,
    flush_ms.
    """

    __slots__ = (
        "_advertised_listeners",
        "_layers",
        "_listeners",
        "_log_config",
        "_log_dirs",
        "_metadata_log_dir",
        "_metrics_listener",
        "_node_id",
        "_notes",
        "_static",
        "_unserved",
        "_values",
        "_warnings",
    )

    def __init__(
        self,
        static: Mapping[str, Setting],
        dynamic_default: Mapping[str, Setting],
        dynamic_broker: Mapping[str, Setting],
        notes: tuple[str, ...],
        dynamic_notes: tuple[str, ...] = (),
    ) -> None:
        """Use of(), load() or with_dynamic(). Raises ConfigError."""
        self._static = dict(static)
        self._notes = notes
        self._values: dict[str, ConfigValue] = dict(_DEFAULTS)
        self._layers: dict[str, tuple[ConfigValue, ...]] = {}
        self._unserved: dict[str, ConfigValue] = {}
        self._log_config: LogConfig | None = None
        for settings, source in (
            (static, ConfigSource.STATIC_BROKER_CONFIG),
            (dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
            (dynamic_broker, ConfigSource.DYNAMIC_BROKER_CONFIG),
        ):
            for name, setting in settings.items():
                self._set(name, setting, source)
        self._node_id = combinations.node_id(self)
        self._log_dirs, self._metadata_log_dir = combinations.directories(self)
        self._listeners, self._advertised_listeners = combinations.client_listeners(self)
        self._metrics_listener = combinations.metrics_listener(self, self._listeners)
        combinations.ensure_possible(self)
        self._warnings = (*notes, *dynamic_notes, *combinations.warnings(self))

    @classmethod
    def of(cls, static: Mapping[str, Setting] | None = None, notes: tuple[str, ...] = ()) -> BrokerConfig:
        """A configuration from static settings alone; without any, the defaults. Raises ConfigError.

        `notes` are warnings of whoever read the settings; they come first in `warnings`.
        """
        return cls(static or {}, {}, {}, notes)

    def with_dynamic(
        self, default: Mapping[str, str], broker: Mapping[str, str], *, stored: bool = False
    ) -> BrokerConfig:
        """The same configuration under the dynamic layers given, which replace any that it had. Raises ConfigError.

        `default` is for all brokers, `broker` for this one. A name that is unknown, read-only or may only be set for
        one broker is refused. With `stored` (a replay of the metadata log, which another program may have written) such
        a name or an unreadable value is skipped with a warning instead: a broker must start with what it finds.
        """
        notes = []
        layers = []
        for texts, origin, is_default_layer in (
            (default, ALL_BROKERS_ORIGIN, True),
            (broker, THIS_BROKER_ORIGIN, False),
        ):
            layer: dict[str, Setting] = {}
            for name, text in texts.items():
                try:
                    _ensure_dynamic(name, text, origin, is_default_layer)
                except ConfigError as error:
                    if not stored:
                        raise
                    notes.append(f"{error}; ignored")
                else:
                    layer[name] = Setting(text, origin)
            layers.append(layer)
        return BrokerConfig(self._static, layers[0], layers[1], self._notes, tuple(notes))

    # Single properties

    def value(self, name: str) -> ConfigValue:
        """Value, text, layer and origin of a served property. KeyError for another name."""
        return self._values[name]

    def layers(self, name: str) -> tuple[ConfigValue, ...]:
        """Every layer that gives the property a value, the one that holds first, the default last unless it is null."""
        default = _DEFAULTS[name]
        return self._layers.get(name, ()) + (() if default.value is None else (default,))

    def get(self, name: str) -> PropertyValue:
        """The value, None where it is unset and has no default. KeyError for a name that is not served."""
        return self._values[name].value

    def get_int(self, name: str) -> int:
        """The value of an int, short or long that is set or has a default."""
        value = self._values[name].value
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} is no integer: {value!r}")
        return value

    def get_float(self, name: str) -> float:
        """The value of a double that is set or has a default."""
        value = self._values[name].value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError(f"{name} is no double: {value!r}")
        return float(value)

    def get_bool(self, name: str) -> bool:
        """The value of a boolean."""
        value = self._values[name].value
        if not isinstance(value, bool):
            raise TypeError(f"{name} is no boolean: {value!r}")
        return value

    def get_str(self, name: str) -> str:
        """The value of a string that is set or has a default."""
        value = self._values[name].value
        if not isinstance(value, str):
            raise TypeError(f"{name} is no string: {value!r}")
        return value

    def get_list(self, name: str) -> tuple[str, ...]:
        """The value of a list that is set or has a default."""
        value = self._values[name].value
        if not isinstance(value, tuple):
            raise TypeError(f"{name} is no list: {value!r}")
        return value

    def is_set(self, name: str) -> bool:
        """True when some layer gave it."""
        return not self._values[name].is_default

    def setting(self, name: str) -> str:
        """The property for a sentence: "log.roll.ms=5 in --set", "log.cleaner.threads=1 (default)"."""
        value = self._values[name]
        if value.is_default:
            return f"{name}={'' if value.text is None else value.text} (default)"
        return f"{name}={value.text} in {value.origin}"

    # What several properties decide

    @property
    def node_id(self) -> int | None:
        """node.id or broker.id; None: adopt that of meta.properties, else 1."""
        return self._node_id

    @property
    def log_dirs(self) -> tuple[Path, ...]:
        """The data directories, absolute, each once, in the order given."""
        return self._log_dirs

    @property
    def metadata_log_dir(self) -> Path:
        """Where the metadata log lives, absolute; the first of log_dirs unless it is set."""
        return self._metadata_log_dir

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """The client listeners to open: PLAINTEXT ones that are no controller's. At least one."""
        return self._listeners

    @property
    def advertised_listeners(self) -> Mapping[str, Listener]:
        """By listener name, what its clients are told.

        Host "" is the address at which the client reached the broker, port 0 the port that was opened.
        """
        return self._advertised_listeners

    @property
    def metrics_listener(self) -> Listener | None:
        """Where /metrics is served, None for nowhere."""
        return self._metrics_listener

    @property
    def retention_ms(self) -> int:
        """From log.retention.ms, .minutes and .hours: -1 for ever, else at least 1."""
        return self._family("retention.ms")

    @property
    def segment_ms(self) -> int:
        """From log.roll.ms and .hours: at least 1."""
        return self._family("segment.ms")

    @property
    def segment_jitter_ms(self) -> int:
        """From log.roll.jitter.ms and .hours: at least 0."""
        return self._family("segment.jitter.ms")

    @property
    def flush_ms(self) -> int:
        """From log.flush.interval.ms, else log.flush.scheduler.interval.ms."""
        return self._family("flush.ms")

    @property
    def log_config(self) -> LogConfig:
        """The configuration of a topic that overrides nothing."""
        if self._log_config is None:
            from barnabas.config.log_config import LogConfig

            # Two threads may both build it: the results are equal, and the last one stays.
            self._log_config = LogConfig.of_defaults(self)
        return self._log_config

    def topic_default(self, topic_property: Property) -> ConfigValue:
        """What a topic property is when the topic does not set it. A family is converted to the topic's unit."""
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

    # All of it

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences for the log, each once: legal settings that people should know about."""
        return self._warnings

    @property
    def unserved(self) -> Mapping[str, ConfigValue]:
        """Kafka's properties that were set and have no effect here. Values are kept, never shown: some are secrets."""
        return self._unserved

    def describe(self) -> list[tuple[Property, ConfigValue]]:
        """Every served property with its value, in the order of the documents."""
        return [(each, self._values[each.name]) for each in BROKER_PROPERTIES.values()]

    def _family(self, topic_name: str) -> int:
        value = self.topic_default(TOPIC_PROPERTIES[topic_name]).value
        assert isinstance(value, int)
        return value

    def _set(self, name: str, setting: Setting, source: ConfigSource) -> None:
        known = BROKER_PROPERTIES.get(name)
        if known is None:
            if not names.is_unserved(name):
                raise names.unknown_property(name, setting.origin)
            self._unserved[name] = ConfigValue(setting.text, None, source, setting.origin)
            return
        value = _parse(known, setting)
        text = None if known.is_sensitive else setting.text.strip()
        self._values[name] = given = ConfigValue(value, text, source, setting.origin)
        self._layers[name] = (given, *self._layers.get(name, ()))


def _parse(known: Property, setting: Setting) -> PropertyValue:
    shown = "" if known.is_sensitive else f"={setting.text}"
    _, reference, after = setting.text.partition("${")
    if reference and ":" in after and "}" in after:
        # Taken as it is, it would name a directory "${env:DATA}".
        raise ConfigError(f"{known.name}{shown} in {setting.origin}: config providers are not served; write the value")
    try:
        return known.parse(setting.text)
    except BadValueError as error:
        raise ConfigError(f"{known.name}{shown} in {setting.origin}: {error}") from None


def _ensure_dynamic(name: str, text: str, origin: str, is_default_layer: bool) -> None:
    known = BROKER_PROPERTIES.get(name)
    if known is None:
        if names.is_unserved(name):
            return
        raise names.unknown_property(name, origin)
    if not known.is_dynamic:
        raise ConfigError(f"{name} in {origin}: read-only, it is read when the broker starts")
    if known.update_mode == PER_BROKER and is_default_layer:
        raise ConfigError(f"{name} in {origin}: it can be set for one broker only")
    _parse(known, Setting(text, origin))


_DEFAULTS = {
    each.name: ConfigValue(each.default, show(each.default), ConfigSource.DEFAULT_CONFIG, DEFAULT_ORIGIN)
    for each in BROKER_PROPERTIES.values()
}
