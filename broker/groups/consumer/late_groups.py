"""The groups of the newer consumer protocol, made and their modules loaded when there may be a first one.

That is when a request of the protocol comes, or when a start finds their records. Until then there is no such group, so
there is nothing to look up, to change or to end, and most brokers never have one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.groups.consumer.group import ConsumerGroup
    from barnabas.broker.groups.consumer.groups import ConsumerGroups
    from barnabas.broker.groups.group_records import GroupRecord


class LateConsumerGroups:
    """In the event loop only."""

    def __init__(self, make: Callable[[], ConsumerGroups]) -> None:
        self._make = make
        self._groups: ConsumerGroups | None = None
        self._stopping = False

    def made(self) -> ConsumerGroups:
        """The groups, made now where they are not yet."""
        if self._groups is None:
            self._groups = self._make()
            if self._stopping:
                self._groups.stop()
        return self._groups

    def get(self, group_id: str) -> ConsumerGroup | None:
        """None: there is no such consumer group."""
        return None if self._groups is None else self._groups.get(group_id)

    def group_ids(self) -> Iterable[str]:
        """All that there are."""
        return () if self._groups is None else self._groups.log.groups

    def load(self, records: Sequence[GroupRecord]) -> None:
        """At start: what one partition of the log says of them."""
        if records:
            self.made().log.load(records)

    def topics_changed(self, names: frozenset[str], *, are_new: bool) -> None:
        """Topics were made, deleted or given partitions."""
        if self._groups is not None:
            self._groups.topics_changed(names, are_new=are_new)

    def forget(self, group_id: str) -> None:
        """The group's log is gone."""
        if self._groups is not None:
            self._groups.log.forget(group_id)

    def stop(self) -> None:
        """Send everybody who comes from now on to ask for the coordinator again."""
        self._stopping = True
        if self._groups is not None:
            self._groups.stop()
