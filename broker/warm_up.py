"""Import of the modules of common APIs: of the first answer while the logs load, of the others once the broker serves.

A handler and its codec are imported at the API's first request, which takes 1 to 14 ms of the event loop, and the
coordinators at their first use, which takes 25. After this import, on a thread, the first requests of producers,
consumers and classic groups find their modules loaded.
Other APIs are rare, and wait for their first request.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from barnabas.broker.handlers.api_table import handler_modules
from barnabas.protocol.kafka.apis import KAFKA_APIS
from barnabas.protocol.messages.api_key import ApiKey

logger = logging.getLogger(__name__)

COMMON_APIS: Final = (
    ApiKey.API_VERSIONS,
    ApiKey.METADATA,
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.FIND_COORDINATOR,
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.OFFSET_FETCH,
    ApiKey.OFFSET_COMMIT,
    ApiKey.LEAVE_GROUP,
    ApiKey.INIT_PRODUCER_ID,
)
"""In the order in which a client that has just connected sends them."""

_COORDINATORS: Final = (
    "barnabas.broker.coordinator_log.log",
    "barnabas.broker.coordinator_log.loading",
    "barnabas.broker.groups.log.group_log",
    "barnabas.broker.groups.offsets.service",
    "barnabas.broker.groups.coordinator",
    "barnabas.broker.transactions.log",
    "barnabas.broker.transactions.coordinator",
)
"""In small steps: the event loop waits for the interpreter while a thread imports a module."""

_ALSO: Final = (
    "cramjam",
    "barnabas.broker.groups.classic.groups",
    "barnabas.broker.groups.membership",
    "barnabas.protocol.native.dialect",
)

DELAY_SECONDS: Final = 0.1
"""Time between the start and the import, for the clients that were waiting for the broker."""

_PAUSE_SECONDS: Final = 0.001
"""Time for the event loop after each module."""


def first_modules() -> list[str]:
    """Return the full names of the modules that a client's first request needs."""
    return _modules_of(COMMON_APIS[:1])


def common_modules() -> list[str]:
    """Return the full names of the modules to import once the broker serves, in order."""
    split = COMMON_APIS.index(ApiKey.JOIN_GROUP)
    return [*_modules_of(COMMON_APIS[:split]), *_COORDINATORS, *_modules_of(COMMON_APIS[split:]), *_ALSO]


def _modules_of(apis: Sequence[ApiKey]) -> list[str]:
    codecs = {each.key: each.module for each in KAFKA_APIS}
    handlers = handler_modules()
    return [name for api in apis for name in (codecs[api], handlers.get(api)) if name is not None]


def import_modules(names: Sequence[str], pause_seconds: float = 0.0) -> None:
    """Import modules one by one. A module that fails is logged, and fails again at its request."""
    for name in names:
        try:
            import_module(name)
        except Exception:
            logger.exception("a bug: %s cannot be imported", name)
        time.sleep(pause_seconds)


def warm_up() -> None:
    """Import the modules of common APIs. Runs on a thread."""
    started = time.monotonic()
    import_modules(common_modules(), _PAUSE_SECONDS)
    logger.debug("the modules of common APIs are imported, seconds=%.3f", time.monotonic() - started)
