"""One partition's log: reading, appending, flushing, truncation, retention, loading after a stop or a crash.

The broker holds a `partition_log.PartitionLog`, which describes the invariants and the parts; of a log that is only
read it needs what `readable_log.ReadableLog` has.
"""
