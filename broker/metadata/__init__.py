"""Topics, partitions, configs and producer id blocks: the metadata log, its image and its one writer.

The log `__cluster_metadata-0` is the only source of truth: the image is what a replay gives. `open_metadata`
(`store`) is the door; topic and config operations (`topics`, `configs`) are functions from an image to records.
"""

from __future__ import annotations
