"""References to config providers in a client's properties, as in Kafka's clients: ${provider:path:key}."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

from barnabas.clients.errors import ClientConfigError
from barnabas.config.errors import ConfigError
from barnabas.config.security.providers import providers_of
from barnabas.config.value import Setting


def resolved(properties: Mapping[str, str], names: Collection[str], origin: str) -> dict[str, str]:
    """Return the properties with the references in `names` replaced. Reads the files that they name.

    `origin` is the file of the properties, for errors. Raises ClientConfigError, which names property and reference.
    """
    settings = {name: Setting(text, origin) for name, text in properties.items()}
    try:
        providers = providers_of(settings, os.environ)
        return {
            name: providers.resolve(name, setting).text if name in names else setting.text
            for name, setting in settings.items()
        }
    except ConfigError as error:
        raise ClientConfigError(str(error)) from error
