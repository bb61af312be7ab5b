"""What a change of a share group depends on besides the group."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.groups.share.settings import ShareGroupSettings

if TYPE_CHECKING:
    from barnabas.broker.groups.timers import GroupClock
    from barnabas.broker.metadata.image import MetadataImage


class ShareContext(NamedTuple):
    """`image` returns the present metadata."""

    settings: ShareGroupSettings
    clock: GroupClock
    image: Callable[[], MetadataImage]

    def settings_of(self, group_id: str) -> ShareGroupSettings:
        """Return a group's settings: the broker's, overridden by its own configs as they are now."""
        return self.settings.with_overrides(self.image().group_configs(group_id))
