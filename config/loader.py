"""Loading of the broker's configuration: file, environment and --set, in this order; the later wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from barnabas.config import environment, names
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.errors import ConfigError
from barnabas.config.properties_file import BadLineError, decode, parse_properties
from barnabas.config.security.providers import providers_of
from barnabas.config.security.security_checks import holds_secret, is_readable_by_others
from barnabas.config.value import Setting, trim

__all__ = ["BrokerConfig", "ConfigError", "load"]


def load(
    *, config_file: Path | None = None, environ: Mapping[str, str] | None = None, overrides: Sequence[str] = ()
) -> BrokerConfig:
    """Load the configuration of a broker.

    `config_file` is a Java .properties file, for example Kafka's server.properties; it defaults to BARNABAS_CONFIG.
    `environ` has variables like BARNABAS_LOG_RETENTION_MS, `overrides` are the name=value texts of --set.
    Raises ConfigError: unreadable file, unknown name, bad value, impossible combination.
    """
    environ = {} if environ is None else environ
    if config_file is None and environ.get(environment.CONFIG_FILE):
        config_file = Path(environ[environment.CONFIG_FILE])
    settings: dict[str, Setting] = {}
    notes: list[str] = []
    if config_file is not None:
        settings.update(_from_file(config_file, notes))
    settings.update(_from_environment(environ))
    settings.update(_from_overrides(overrides))
    return BrokerConfig.of(settings, tuple(notes), providers_of(settings, environ))


def _from_file(path: Path, notes: list[str]) -> dict[str, Setting]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read the configuration file {path}: {error.strerror}") from None
    try:
        entries = parse_properties(decode(content))
    except BadLineError as error:
        raise ConfigError(f"{path} line {error.line}: {error}") from None
    settings: dict[str, Setting] = {}
    for key, value, line in entries:
        if not key:
            raise ConfigError(f"{path} line {line}: a value without a name")
        setting = Setting(value, f"{path} line {line}")
        earlier = settings.get(key)
        if earlier is not None and trim(earlier.text) != trim(value):
            notes.append(f"{key} in {earlier.origin} has no effect: line {line} sets it again")
        settings[key] = setting
    secrets = [name for name, each in settings.items() if holds_secret(name) and "${" not in each.text]
    if secrets and is_readable_by_others(path):
        notes.append(
            f"{path} has passwords or keys ({', '.join(secrets)}) and can be read by every user of this machine"
        )
    return settings


def _from_environment(environ: Mapping[str, str]) -> dict[str, Setting]:
    settings = {}
    for variable, value in environ.items():
        if not variable.startswith(environment.PREFIX) or environment.is_reserved(variable):
            continue
        name = names.property_of_variable(variable)
        if name is not None:
            settings[name] = Setting(value, f"the environment ({variable})")
        elif not environment.is_service_link(variable):
            raise names.unknown_variable(variable)
    return settings


def _from_overrides(overrides: Sequence[str]) -> dict[str, Setting]:
    settings = {}
    for text in overrides:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            # Only what may be a name is shown: the rest may be a password.
            end = next((index for index, each in enumerate(text) if each in ": \t\"'"), len(text))
            shown = text[:end] + ("..." if end < len(text) else "")
            raise ConfigError(f"{shown} in --set: not of the form name=value")
        settings[name.strip()] = Setting(value, "--set")
    return settings
