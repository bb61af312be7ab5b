"""The records of the metadata log `__cluster_metadata-0`, as Kafka's KRaft mode writes them: bytes only.

A batch of this log holds either metadata records (`frame`: value only, no key, no headers) or control records
(`control`: key and value). All records of a batch have the batch's timestamp, because Kafka refuses anything else.

The records are NamedTuples, unlike the dataclasses elsewhere: two dozen dataclasses would add 15 ms to every start of
the broker.
"""

from __future__ import annotations
