"""Configuration: the property tables (Kafka's names, types, defaults, validators), the loader, the shipped files.

load() returns a BrokerConfig, BrokerConfig.log_config.with_overrides() a topic's LogConfig, and
validate_topic_configs() checks the configs of a topic before they are stored. Every refusal is a ConfigError with a
complete sentence.
"""

from __future__ import annotations

from barnabas.config.broker_config import BrokerConfig
from barnabas.config.errors import ConfigError
from barnabas.config.listeners import Listener
from barnabas.config.loader import load
from barnabas.config.log_config import LogConfig
from barnabas.config.property import Property, PropertyType
from barnabas.config.reconfiguration import ensure_reconfigurable
from barnabas.config.tables.broker_properties import BROKER_PROPERTIES
from barnabas.config.tables.topic_properties import TOPIC_PROPERTIES
from barnabas.config.topic_config import complaints, describe_topic, validate_topic_configs
from barnabas.config.value import ConfigSource, ConfigValue, Setting

__all__ = [
    "BROKER_PROPERTIES",
    "TOPIC_PROPERTIES",
    "BrokerConfig",
    "ConfigError",
    "ConfigSource",
    "ConfigValue",
    "Listener",
    "LogConfig",
    "Property",
    "PropertyType",
    "Setting",
    "complaints",
    "describe_topic",
    "ensure_reconfigurable",
    "load",
    "validate_topic_configs",
]
