"""Limits on the change of a running broker's properties in one step.

Source: Kafka LogCleaner.validateReconfiguration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.config.errors import ConfigError

if TYPE_CHECKING:
    from barnabas.config.broker_config import BrokerConfig

CLEANER_THREADS = "log.cleaner.threads"


def ensure_reconfigurable(before: BrokerConfig, after: BrokerConfig) -> None:
    """Raise ConfigError if the cleaner's threads would be more than doubled or less than halved."""
    threads, current = after.get_int(CLEANER_THREADS), before.get_int(CLEANER_THREADS)
    setting = after.setting(CLEANER_THREADS)
    if threads < current // 2:
        raise ConfigError(
            f"{setting}: log cleaner threads cannot be reduced to less than half the current value {current}"
        )
    if threads > current * 2:
        raise ConfigError(
            f"{setting}: log cleaner threads cannot be increased to more than double the current value {current}"
        )
