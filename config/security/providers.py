"""Config providers: values that refer to a file, a directory or the environment as ${provider:path:key}.

Kafka's three providers are served by their class names: FileConfigProvider (a properties file), DirectoryConfigProvider
(a file per key, as Kubernetes mounts secrets) and EnvVarConfigProvider. `config.providers` names them, and
`config.providers.<name>.class` and `.param.*` describe each. Source: Kafka's ConfigTransformer and
config.provider.*.

Different from Kafka: a reference that cannot be resolved is refused; Kafka keeps its text, and a password would then be
the text "${file:...}". Between quotes of a sasl.jaas.config, the value is escaped, without line ends at its end: Kafka
inserts it as it is, so a password with a quote breaks the line, and one that is chosen well adds users.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Final, NamedTuple

from barnabas.config.errors import ConfigError
from barnabas.config.properties_file import BadLineError, decode, parse_properties
from barnabas.config.security.bounded_file import read_regular_file
from barnabas.config.value import Setting

PREFIX: Final = "config.providers."

_FILE_BYTES_MAX: Final = 1024 * 1024
"""Size limit of a provider's file: clients may alter references, and a wrong path must not fill the memory."""

_JAAS: Final = "sasl.jaas.config"
_PACKAGE: Final = "org.apache.kafka.common.config.provider."

Lookup = Callable[[str, str], str | None]
"""From a path, which may be empty, and a key to a value; None if there is no value. Raises OSError, _RefusedError."""


class _RefusedError(Exception):
    """A look-up that the provider refuses; `str(error)` ends the sentence."""


class ConfigProviders:
    """The configured providers by name. Files are read at every look-up."""

    def __init__(self, lookups: Mapping[str, Lookup], files: set[Path]) -> None:
        self._lookups = lookups
        self.files: Set[Path] = files
        """Files that values were read from, up to now."""

    def resolve(self, name: str, setting: Setting) -> Setting:
        """Return the setting of property `name` with its references replaced. Raises ConfigError."""
        if "${" not in setting.text:
            return setting

        from barnabas.config.security.jaas import escaped, quoted_ranges

        quoted = quoted_ranges(setting.text) if name.endswith(_JAAS) else []

        parts: list[str] = []
        end = 0
        for start, reference in _references(setting.text):
            value = self._value(name, setting.origin, reference)
            is_quoted = any(start in each for each in quoted)
            parts += setting.text[end:start], escaped(value.rstrip("\r\n")) if is_quoted else value
            end = start + len(reference.text)
        return Setting("".join(parts) + setting.text[end:], setting.origin, setting.text) if parts else setting

    def _value(self, name: str, origin: str, reference: _Reference) -> str:
        where = f"{name} in {origin}: {reference.text}"
        lookup = self._lookups.get(reference.provider)
        if lookup is None:
            known = f"it names {', '.join(self._lookups)}" if self._lookups else "it is not set"
            raise ConfigError(f"{where} has no config provider {reference.provider} in config.providers; {known}")
        try:
            value = lookup(reference.path, reference.key)
        except OSError as error:
            raise ConfigError(f"{where} cannot be read: {error.strerror}") from None
        except _RefusedError as error:
            raise ConfigError(f"{where} {error}") from None
        if value is None:
            raise ConfigError(f"{where} has no value")
        return value


class _Reference(NamedTuple):
    text: str
    provider: str
    path: str
    key: str


def _references(text: str) -> Iterator[tuple[int, _Reference]]:
    r"""Yield the references of a text with their positions.

    As Kafka's \$\{([^}]*?):(([^}]*?):)?([^}]*?)\}, which takes years for some texts that a client may send.
    """
    end = 0
    while (start := text.find("${", end)) >= 0 and (end := text.find("}", start) + 1):
        parts = text[start + 2 : end - 1].split(":", 2)
        if len(parts) > 1:
            yield start, _Reference(text[start:end], parts[0], parts[1] if len(parts) > 2 else "", parts[-1])


NO_PROVIDERS: Final = ConfigProviders({}, set())


def providers_of(settings: Mapping[str, Setting], environ: Mapping[str, str]) -> ConfigProviders:
    """Return the providers that `settings` configure. Raises ConfigError."""
    named = settings.get("config.providers")
    names = [each.strip() for each in named.text.split(",") if each.strip()] if named is not None else []
    if named is None or not names:
        return NO_PROVIDERS
    lookups: dict[str, Lookup] = {}
    files: set[Path] = set()
    for name in names:
        kind = settings.get(f"{PREFIX}{name}.class")
        if kind is None:
            raise ConfigError(f"config.providers={named.text} in {named.origin}: {PREFIX}{name}.class is not set")
        parameters = {
            key.removeprefix(f"{PREFIX}{name}.param."): setting
            for key, setting in settings.items()
            if key.startswith(f"{PREFIX}{name}.param.")
        }
        lookups[name] = _lookup(f"{PREFIX}{name}", kind, parameters, environ, files)
    return ConfigProviders(lookups, files)


def _lookup(
    prefix: str, kind: Setting, parameters: Mapping[str, Setting], environ: Mapping[str, str], files: set[Path]
) -> Lookup:
    name = kind.text.strip().removeprefix(_PACKAGE)
    if name == "EnvVarConfigProvider":
        return _from_environment(prefix, parameters.get("allowlist.pattern"), environ)
    if name in ("FileConfigProvider", "DirectoryConfigProvider"):
        allowed = _allowed_paths(prefix, parameters.get("allowed.paths"))
        read = _from_file if name == "FileConfigProvider" else _from_directory
        return lambda path, key: read(_allowed(path, allowed), key, files) if path else None
    raise ConfigError(
        f"{prefix}.class={kind.text} in {kind.origin}: Java classes are not loaded; Barnabas serves "
        f"{_PACKAGE}FileConfigProvider, DirectoryConfigProvider and EnvVarConfigProvider"
    )


def _from_environment(prefix: str, pattern: Setting | None, environ: Mapping[str, str]) -> Lookup:
    from barnabas.config.regex import Regex, RegexError  # most brokers have no providers

    try:
        allowed = None if pattern is None else Regex(pattern.text, java=True)
    except RegexError as error:
        assert pattern is not None
        raise ConfigError(f"{prefix}.param.allowlist.pattern in {pattern.origin}: {error}") from None

    def lookup(path: str, key: str) -> str | None:
        if path:
            raise _RefusedError(f"has the path {path}; the environment has no paths, write ${{provider:NAME}}")
        if allowed is not None and not allowed.matches(key):
            raise _RefusedError("is not allowed by allowlist.pattern")
        return environ.get(key)

    return lookup


def _from_file(path: Path, key: str, files: set[Path]) -> str | None:
    try:
        entries = parse_properties(decode(read_regular_file(path, _FILE_BYTES_MAX)))
    except BadLineError as error:
        raise _RefusedError(f"cannot be read: line {error.line}: {error}") from None
    files.add(path)
    return {entry.key: entry.value for entry in entries}.get(key)


def _from_directory(path: Path, key: str, files: set[Path]) -> str | None:
    # As Kafka, which lists the directory: a key with a slash is no file of it.
    if "/" in key or key in ("", ".", "..") or not (path / key).is_file():
        return None
    files.add(path / key)
    return decode(read_regular_file(path / key, _FILE_BYTES_MAX))


def _allowed_paths(prefix: str, allowed: Setting | None) -> Sequence[Path] | None:
    if allowed is None or not allowed.text:
        return None
    paths = [Path(os.path.normpath(each)) for each in allowed.text.split(",")]
    for path in paths:
        problem = "is not absolute" if not path.is_absolute() else "" if path.exists() else "does not exist"
        if problem:
            raise ConfigError(f"{prefix}.param.allowed.paths={allowed.text} in {allowed.origin}: {path} {problem}")
    return paths


def _allowed(path: str, allowed: Sequence[Path] | None) -> Path:
    if allowed is None:
        return Path(path)
    normal = Path(os.path.normpath(path))
    if not any(normal.is_relative_to(each) for each in allowed):
        raise _RefusedError("is outside of allowed.paths")
    return normal
