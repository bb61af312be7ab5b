"""The current configuration: the start-up configuration with the dynamic layers of the metadata log on top."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.broker.startup_error import StartupError
from barnabas.config import ConfigError, LogConfig, ensure_reconfigurable
from barnabas.config.security.listener_view import ListenerView

logger = logging.getLogger(__name__)

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.config import BrokerConfig


class LiveConfig:
    """The current configuration. `apply` replaces `broker` as a whole, so any thread may read it."""

    def __init__(self, static: BrokerConfig, node_id: int, image: MetadataImage) -> None:
        """`static` is the start-up configuration."""
        self.static = static
        self._node_id = node_id
        self.broker = static
        self._image = image
        self._checks: list[Callable[[BrokerConfig], None]] = []
        self._followers: list[Callable[[], None]] = []
        self.apply(image)

    def follow(self, check: Callable[[BrokerConfig], None], changed: Callable[[], None]) -> None:
        """Have changes of the broker's properties checked before they are stored, and reported when they are applied.

        `check` raises ConfigError for a configuration that cannot be applied. Both run in threads and may block.
        """
        self._checks.append(check)
        self._followers.append(changed)

    def ensure_applicable(self, before: BrokerConfig, after: BrokerConfig) -> None:
        """Raise ConfigError if the running broker cannot change from one configuration to the other. Blocks."""
        ensure_reconfigurable(before, after)
        for check in self._checks:
            check(after)

    def apply(self, image: MetadataImage) -> bool:
        """Apply the dynamic layers of `image`; return whether the broker's own properties changed.

        Raises StartupError if a stored value cannot be obeyed and may not be ignored.
        """
        default = image.default_broker_configs()
        broker = image.broker_configs(self._node_id)
        changed = self._image is image or (
            default != self._image.default_broker_configs() or broker != self._image.broker_configs(self._node_id)
        )
        self._image = image
        if changed:
            before = self.broker.stored_problems
            try:
                self.broker = self.static.with_dynamic(default, broker, stored=True)
            except ConfigError as error:  # of a listener: without the value it might let in whom it should not
                raise StartupError(
                    f"the metadata log has a dynamic config that cannot be obeyed: {error}. With another name of the "
                    "listener the broker starts without it; then remove the config"
                ) from error
            for problem in self.broker.stored_problems:
                if problem not in before:
                    logger.warning("%s", problem)
            for follower in self._followers:
                follower()
        return changed

    def listener_properties(self, listener: str) -> ListenerView:
        """Return the properties of a listener, or of METRICS, which follow the changes of this configuration."""
        return ListenerView(lambda: self.broker, listener, self.static.security_protocol(listener))

    def log_config(self, topic: str) -> LogConfig:
        """Return the configuration of the topic's logs."""
        return self.broker.log_config.with_overrides(self._image.topic_configs(topic))
