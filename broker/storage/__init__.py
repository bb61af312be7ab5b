"""The log engine: partitions on disk, byte for byte in Apache Kafka's format.

Synchronous and thread-safe; it imports no network code, no asyncio and no metrics library. `log_manager.LogManager`
owns the log directories and the logs in them; `log.PartitionLog` is one log.
"""
