"""The log engine: partitions on disk, byte for byte in Apache Kafka's format.

Synchronous and thread-safe; it imports no network code, no asyncio and no metrics library. `log_manager.LogManager`
owns the log directories and the logs in them, `maintenance` the scheduled tasks, `partition_moves` moves between
directories, `group_commit` the flusher thread; `served_logs` is the part that a read-only broker has, too.
`log.partition_log.PartitionLog` is one log.
"""
