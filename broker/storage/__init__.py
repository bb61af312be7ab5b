"""The log engine: topics' partitions as Apache Kafka keeps them on disk, byte for byte.

Synchronous, thread-safe, and without a client's view: it knows no connection, no asyncio and no metrics library.
`log_manager.LogManager` owns the directories and the logs in them; `log.PartitionLog` is one log.
"""
