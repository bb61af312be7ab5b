"""Validation of a subscription of client metrics before it is stored, with Kafka's codes and sentences.

The expressions of `match` are in RE2's syntax here and in Java's at Kafka: lookarounds and backreferences are refused.
Source: Kafka's ClientMetricsConfigs.validate.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.config.client_metrics_configs import (
    CLIENT_METRICS_CONFIGS,
    INTERVAL_MS,
    MATCH,
    MATCH_NAMES,
    MAX_INTERVAL_MS,
    MIN_INTERVAL_MS,
)
from barnabas.config.property import BadValueError
from barnabas.config.regex import MAX_LENGTH, RegexError, compiled
from barnabas.config.value import trim
from barnabas.protocol.errors import BrokerError, ErrorCode


def validate_subscription(texts: Mapping[str, str]) -> None:
    """Raise BrokerError INVALID_REQUEST for an unknown name or interval, INVALID_CONFIG for another wrong value."""
    for name in texts:
        if name not in CLIENT_METRICS_CONFIGS:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}")
    values = {}
    for name, text in texts.items():
        try:
            values[name] = CLIENT_METRICS_CONFIGS[name].parse(text)
        except BadValueError as error:
            raise BrokerError(
                ErrorCode.INVALID_CONFIG, f"Invalid value {text} for configuration {name}: {error}"
            ) from None
    interval = values.get(INTERVAL_MS)
    if isinstance(interval, int) and not MIN_INTERVAL_MS <= interval <= MAX_INTERVAL_MS:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {interval} for {INTERVAL_MS}, interval must be between 100 and 3600000 (1 hour)",
        )
    match = values.get(MATCH)
    if isinstance(match, tuple):
        parse_match(match)


def parse_match(entries: tuple[str, ...]) -> dict[str, str]:
    """Return what a client is matched by, and the expressions. Raises BrokerError INVALID_CONFIG."""
    expressions = {}
    for entry in entries:
        # As Java's split: trailing empty parts do not count.
        parts = entry.rstrip("=").split("=")
        name, expression = trim(parts[0]), trim(parts[-1])
        try:
            if len(parts) != 2 or name not in MATCH_NAMES:
                raise BrokerError(ErrorCode.INVALID_CONFIG, "it is not NAME=EXPRESSION")
            compiled(expression, max_length=MAX_LENGTH)
        except (BrokerError, RegexError) as error:
            message = f"Illegal client matching pattern: {entry} ({error})"
            raise BrokerError(ErrorCode.INVALID_CONFIG, message) from None
        expressions[name] = expression
    return expressions
