"""The broker's configuration: its property values, and what several of them decide together. Immutable."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from pathlib import Path
from types import MappingProxyType

from barnabas.config import combinations, names
from barnabas.config.errors import CombinationError, ConfigError
from barnabas.config.listeners import METRICS, Listener
from barnabas.config.log_config import DECIDES_DELETION, KEPT, LogConfig
from barnabas.config.property import BadValueError, Property, UpdateMode
from barnabas.config.property_values import PropertyValues, parse_setting
from barnabas.config.security import security_checks
from barnabas.config.security.listener_view import ListenerView
from barnabas.config.security.providers import NO_PROVIDERS, PREFIX, ConfigProviders
from barnabas.config.tables.tls_properties import STORE_PROPERTIES
from barnabas.config.tables.topic_properties import TOPIC_PROPERTIES
from barnabas.config.value import ConfigSource, ConfigValue, Setting, trim

_DYNAMIC_SOURCES = (ConfigSource.DYNAMIC_BROKER_CONFIG, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)

ALL_BROKERS_ORIGIN = "the dynamic config of all brokers"
THIS_BROKER_ORIGIN = "the dynamic config of this broker"


class BrokerConfig(PropertyValues):
    """The configuration of a running broker. Create one by loader.load() or BrokerConfig.of().

    Single values: `get*` by name. What several properties decide together is an attribute: node_id, log_dirs,
    metadata_log_dir, listeners, advertised_listeners, metrics_listener, console_listener, retention_ms, segment_ms,
    segment_jitter_ms, flush_ms.
    """

    __slots__ = (
        "_advertised_listeners",
        "_console_listener",
        "_listeners",
        "_log_config",
        "_log_dirs",
        "_metadata_log_dir",
        "_metrics_listener",
        "_node_id",
        "_notes",
        "_protocols",
        "_providers",
        "_static",
        "_unread",
        "_warnings",
        "stored_problems",
    )

    def __init__(
        self,
        static: Mapping[str, Setting],
        dynamic_default: Mapping[str, Setting],
        dynamic_broker: Mapping[str, Setting],
        notes: tuple[str, ...],
        providers: ConfigProviders = NO_PROVIDERS,
        stored_problems: tuple[str, ...] = (),
        unread: Mapping[str, ConfigValue] = MappingProxyType({}),
    ) -> None:
        """Use of(), load() or with_dynamic(). Raises ConfigError."""
        super().__init__(static, dynamic_default, dynamic_broker)
        self.stored_problems = stored_problems
        """Sentences about what the metadata log has and is not in force; LiveConfig writes them to the log."""
        self._unread = {name: each._replace(value=self.get(name)) for name, each in unread.items()}
        self._static = dict(static)
        self._providers = providers
        self._notes = notes
        self._log_config: LogConfig | None = None
        self._node_id = combinations.node_id(self)
        self._log_dirs, self._metadata_log_dir = combinations.directories(self)
        self._listeners, self._advertised_listeners, protocols = combinations.client_listeners(self)
        self._metrics_listener = combinations.metrics_listener(self, self._listeners)
        self._console_listener = combinations.console_listener(self)
        if self._metrics_listener is not None:
            protocols = {METRICS: self._metrics_listener.name} | dict(protocols)
        self._protocols = protocols
        combinations.ensure_possible(self)
        security_checks.ensure_secure(self)
        self._warnings = (
            *notes,
            *stored_problems,
            *combinations.warnings(self, self._listeners),
            *security_checks.warnings(self),
        )

    @classmethod
    def of(
        cls,
        static: Mapping[str, Setting] | None = None,
        notes: tuple[str, ...] = (),
        providers: ConfigProviders = NO_PROVIDERS,
    ) -> BrokerConfig:
        """Return a configuration of static settings; without any, the defaults. Raises ConfigError.

        `notes` are warnings found while the settings were read; they come first in `warnings`. `providers` resolve the
        references in these and in dynamic settings.
        """
        # Resolved once: a file that is gone later does not matter to a running broker.
        resolved = {name: _resolved(name, setting, providers) for name, setting in (static or {}).items()}
        return cls(resolved, {}, {}, notes, providers)

    def with_dynamic(
        self,
        default: Mapping[str, str],
        broker: Mapping[str, str],
        *,
        stored: bool = False,
        changed: Collection[str] = (),
    ) -> BrokerConfig:
        """Return the same configuration with these dynamic layers instead of its own. Raises ConfigError.

        `default` is for all brokers, `broker` for this one. A name that is unknown, read-only or may only be set for
        one broker is refused. With `stored` (a replay of the metadata log, which another program may have written)
        the name or unreadable value is skipped with a warning instead, and so are the values of an impossible
        combination without any of `changed`: a broker must start with what it finds. If the value decides about
        deletion, the logs that take it are kept (log_config.py).
        """
        notes: list[str] = []
        layers: list[dict[str, Setting]] = []
        unread: dict[str, ConfigValue] = {}
        for texts, origin, is_default_layer in (
            (default, ALL_BROKERS_ORIGIN, True),
            (broker, THIS_BROKER_ORIGIN, False),
        ):
            layer: dict[str, Setting] = {}
            for name, text in texts.items():
                try:
                    if names.served_property(name) is None:
                        _ensure_settable_in_kafka(name, text, origin, is_default_layer)
                    setting = _dynamic_setting(name, Setting(text, origin), is_default_layer, self._providers)
                except ConfigError as error:
                    if not stored:
                        raise
                    notes.append(f"{error}; {_effect(name)}")
                    if _decides_deletion(name):
                        source = _DYNAMIC_SOURCES[is_default_layer]
                        unread[name] = ConfigValue(None, trim(text), source, origin, _fault(name, text))
                else:
                    layer[name] = setting
                    unread.pop(name, None)
            layers.append(layer)
        while True:
            try:
                return BrokerConfig(
                    self._static, layers[0], layers[1], self._notes, self._providers, tuple(notes), unread
                )
            except CombinationError as error:
                if not stored or not set(changed).isdisjoint(error.names):
                    raise
                uppermost = {name: layer for layer in layers for name in error.names if name in layer}
                if not uppermost:
                    raise
                notes.append(f"{error}; {_effect(*uppermost)}")
                for name, layer in uppermost.items():
                    text, origin, _ = layer.pop(name)
                    if _decides_deletion(name):
                        source = _DYNAMIC_SOURCES[layer is layers[0]]
                        unread.setdefault(name, ConfigValue(None, trim(text), source, origin, str(error)))

    @property
    def node_id(self) -> int | None:
        """node.id or broker.id. None: take that of meta.properties, else 1."""
        return self._node_id

    @property
    def log_dirs(self) -> tuple[Path, ...]:
        """The data directories, absolute, without repetitions, in the order given."""
        return self._log_dirs

    @property
    def metadata_log_dir(self) -> Path:
        """The directory of the metadata log, absolute; the first of log_dirs unless it is set."""
        return self._metadata_log_dir

    @property
    def initial_features(self) -> Mapping[str, int]:
        """Feature levels of a new directory, by name."""
        pairs = [entry.partition("=") for entry in self.get_list("initial.features")]
        return {name.strip(): int(level) for name, _, level in pairs}

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """The client listeners to open: all but the controllers', at least one."""
        return self._listeners

    @property
    def advertised_listeners(self) -> Mapping[str, Listener]:
        """Listener name -> the address that its clients are told.

        Host "" is the address at which the client reached the broker, port 0 the port that was opened.
        """
        return self._advertised_listeners

    @property
    def metrics_listener(self) -> Listener | None:
        """The address of /metrics, None for no metrics."""
        return self._metrics_listener

    @property
    def console_listener(self) -> Listener | None:
        """The address of the console, None for no console."""
        return self._console_listener

    def security_protocol(self, listener: str) -> str:
        """Return the protocol of a listener, or of METRICS: PLAINTEXT, SSL, ... Raises KeyError for another name."""
        return self._protocols[listener]

    def listener_properties(self, listener: str) -> ListenerView:
        """Return the properties of a listener, or of METRICS, in this configuration. Raises KeyError.

        LiveConfig.listener_properties follows the changes of a running broker.
        """
        return ListenerView(lambda: self, listener, self._protocols[listener])

    @property
    def provider_files(self) -> Set[Path]:
        """Files that config providers read values from."""
        return self._providers.files

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
        """The configuration of a topic without overrides."""
        if self._log_config is None:
            # Two threads may both build it: the results are equal, and the last one stays.
            self._log_config = LogConfig.of(
                {name: self.topic_default(known).value for name, known in TOPIC_PROPERTIES.items()},
                [name for name, known in TOPIC_PROPERTIES.items() if self.topic_default(known).problem is not None],
            )
        return self._log_config

    def topic_default(self, topic_property: Property) -> ConfigValue:
        """Return a topic property's default from the broker, with its `problem` if the stored one is not understood."""
        value = super().topic_default(topic_property)
        unread = [self._unread[each.name] for each in topic_property.synonyms if each.name in self._unread]
        return unread[0]._replace(value=value.value) if unread else value

    def describe(self) -> list[tuple[Property, ConfigValue]]:
        """Return every served property with its value, or with the stored text that is not understood."""
        return [(known, self._unread.get(known.name, value)) for known, value in super().describe()]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences for the log, each once: legal settings with an effect that may surprise."""
        return self._warnings

    def _family(self, topic_name: str) -> int:
        value = self.topic_default(TOPIC_PROPERTIES[topic_name]).value
        assert isinstance(value, int)
        return value


def _ensure_settable_in_kafka(name: str, text: str, origin: str, is_default_layer: bool) -> None:
    """Raise ConfigError for a property without effect here that Kafka would refuse to set."""
    from barnabas.config.tables.kafka_properties import problem_of_broker

    problem = problem_of_broker(name, text, is_default_layer=is_default_layer)
    if problem is not None:
        raise ConfigError(f"{name} in {origin}: {problem}")


def _decides_deletion(name: str) -> bool:
    """Return whether a dynamic broker property decides about deletion in the topics without a value of their own."""
    known = names.served_property(name)
    return known is not None and known.is_dynamic and known.topic_name in DECIDES_DELETION


def _effect(*skipped: str) -> str:
    """Return what stored values that are skipped mean, as the end of a sentence."""
    return f"of topics without a value of their own {KEPT}" if any(map(_decides_deletion, skipped)) else "ignored"


def _fault(name: str, text: str) -> str:
    known = names.served_property(name)
    assert known is not None
    try:
        known.parse(text)
    except BadValueError as error:
        return str(error)
    return "it cannot be set while the broker runs"


def _resolved(name: str, setting: Setting, providers: ConfigProviders) -> Setting:
    return setting if names.served_property(name) is None else providers.resolve(name, setting)


def _dynamic_setting(name: str, setting: Setting, is_default_layer: bool, providers: ConfigProviders) -> Setting:
    """Return the setting with its references resolved. Raises ConfigError if it cannot be set at run time."""
    origin = setting.origin
    known = names.served_property(name)
    if known is None:
        if name.startswith(PREFIX):
            raise ConfigError(f"{name} in {origin}: read-only, it is read when the broker starts")
        if names.is_unserved(name):
            return setting
        raise names.unknown_property(name, origin)
    if not known.is_dynamic:
        raise ConfigError(f"{name} in {origin}: read-only, it is read when the broker starts")
    if name in STORE_PROPERTIES:
        raise ConfigError(
            f"{name} in {origin}: while the broker runs it can be set for one listener only, as "
            f"{names.listener_prefix('<listener>')}{name}"
        )
    if known.update_mode is UpdateMode.PER_BROKER and is_default_layer:
        raise ConfigError(f"{name} in {origin}: it can be set for one broker only")
    resolved = providers.resolve(name, setting)
    if resolved.reference is not None and not known.is_sensitive:
        # Errors and descriptions show other values: whoever may alter configs could read every secret of a provider.
        raise ConfigError(f"{name} in {origin}: while the broker runs, only passwords may refer to a config provider")
    parse_setting(known, resolved, name)
    return resolved
