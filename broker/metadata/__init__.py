"""Topics, partitions, configs and producer id blocks: the metadata log, its image and its one writer.

The log `__cluster_metadata-0` is the only source of truth; the image is the result of its replay. A broker calls
`open_metadata` (`store`) or, with read.only, `read_metadata` (`read_only`); most code only needs a `view`. Topic and
config operations (`topics`, `configs`) are functions from an image to records.
"""

from __future__ import annotations
