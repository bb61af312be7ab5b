"""Levels of the broker's loggers (resource type BROKER_LOGGER), by Kafka's names of the levels.

    FATAL  ERROR  WARN  INFO  DEBUG  TRACE
    50     40     30    20    10     5      Python's levels

The loggers are those of this process with their effective levels; `root` is the root logger. A change holds until the
process ends, as in Kafka. Source: Kafka's RuntimeLoggerManager and Log4jCoreController.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.cluster.configs import OP_APPEND, OP_DELETE, OP_SET, OP_SUBTRACT, ConfigChange

logger = logging.getLogger(__name__)

ROOT: Final = "root"

LEVELS: Final = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": 5,
}
"""Most severe first."""

_REFUSED_OPERATIONS: Final = {OP_APPEND: "APPEND", OP_SUBTRACT: "SUBTRACT"}


def logger_levels() -> dict[str, str]:
    """Return the effective level of each logger."""
    loggers = [each for each in list(logging.root.manager.loggerDict.values()) if isinstance(each, logging.Logger)]
    levels = {each.name: _level_name(each.getEffectiveLevel()) for each in loggers}
    return {ROOT: _level_name(logging.root.getEffectiveLevel())} | dict(sorted(levels.items()))


def ensure_this_node(name: str, node_id: int) -> None:
    """Raise BrokerError INVALID_REQUEST unless a resource's name is the id of this node."""
    try:
        named = int(name)
    except ValueError:
        message = f"Node id must be an integer, but it is: {name}"
        raise BrokerError(ErrorCode.INVALID_REQUEST, message) from None
    if named != node_id:
        message = f"Unexpected node id. Expected {node_id}, but received {named}"
        raise BrokerError(ErrorCode.INVALID_REQUEST, message)


def alter_levels(operations: Sequence[ConfigChange], *, validate_only: bool) -> None:
    """Set and unset levels: all, or none if one operation is refused. Raises BrokerError."""
    known = logger_levels()
    for operation in operations:
        _ensure_possible(operation, known)
    if validate_only:
        return
    for operation in operations:
        altered = logging.getLogger() if operation.name == ROOT else logging.getLogger(operation.name)
        if operation.operation == OP_SET:
            assert operation.value is not None
            altered.setLevel(LEVELS[operation.value])
            logger.warning("updated the log level of %s to %s", operation.name, operation.value)
        else:
            altered.setLevel(logging.NOTSET)
            logger.warning("unset the log level of %s", operation.name)


def _ensure_possible(operation: ConfigChange, known: dict[str, str]) -> None:
    kind, name = operation.operation, operation.name
    if kind not in (OP_SET, OP_DELETE):
        what = _REFUSED_OPERATIONS.get(kind)
        what = f"Unknown operation type {kind} is" if what is None else f"{what} operation is"
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"{what} not allowed for the BROKER_LOGGER resource")
    if name not in known:
        raise BrokerError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    if kind == OP_DELETE:
        if name == ROOT:
            message = f"Removing the log level of the {ROOT} logger is not allowed"
            raise BrokerError(ErrorCode.INVALID_REQUEST, message)
    elif operation.value not in LEVELS:
        raise BrokerError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {name} to {operation.value} as it is not a supported log level. "
            f"Valid log levels are {', '.join(sorted(LEVELS))}",
        )


def _level_name(level: int) -> str:
    """Return Kafka's name of a level of Python's; one between two has the name of the less severe."""
    return next((name for name, number in LEVELS.items() if level >= number), "TRACE")
