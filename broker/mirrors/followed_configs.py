"""Which configs of a source's topic hold for its copy.

Those follow the source that change its records or how long they are kept. The others are the operator's here, and
configs about replicas or tiered storage have no meaning on a single node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.metadata.mirrors.refusals import ALTERABLE_CONFIGS
from barnabas.config import TOPIC_PROPERTIES

if TYPE_CHECKING:
    from collections.abc import Mapping

_NOT_FOLLOWED: Final = ALTERABLE_CONFIGS | {
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "local.retention.bytes",
    "local.retention.ms",
    "remote.copy.disable",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "remote.storage.enable",
}


def followed_configs(source: Mapping[str, str], here: Mapping[str, str]) -> dict[str, str]:
    """Return a copy's own configs: the source's that are followed, and those set here that are not."""
    followed = {name: value for name, value in source.items() if name in TOPIC_PROPERTIES and name not in _NOT_FOLLOWED}
    own = {name: value for name, value in here.items() if name in _NOT_FOLLOWED}
    return followed | own
