"""One partition's log: reading, appending, flushing, truncation, retention, loading after a stop or a crash.

`partition_log.PartitionLog` is the door for the broker; its invariants are described there.
"""
