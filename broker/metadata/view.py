"""What readers need of a node's metadata, whether the broker may change it or only reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from barnabas.broker.metadata.image import MetadataImage
from barnabas.protocol.metadata.control import Voter

ImageListener = Callable[[MetadataImage, MetadataImage], None]
"""Called with the image before and after each change, on the thread that changed it."""


class MetadataView(Protocol):
    """The current image and the node's identity: MetadataStore, or ReadOnlyStore with read.only=true."""

    @property
    def image(self) -> MetadataImage:
        """The current state. Any thread may read it without a lock."""

    @property
    def node_id(self) -> int:
        """The node.id of this broker."""

    @property
    def cluster_id(self) -> str:
        """The cluster id of meta.properties."""

    @property
    def directory_ids(self) -> Mapping[Path, bytes]:
        """Log directory -> its directory.id."""

    @property
    def voter(self) -> Voter:
        """The only voter of the metadata log: this node. Its directory id is zero unless the log holds the voters."""

    @property
    def leader_epoch(self) -> int:
        """The leader epoch of the metadata log."""

    def add_listener(self, listener: ImageListener) -> None:
        """Call `listener(before, after)` after each change from now on, on the thread that changed the image."""
