"""How batches get into a log: from clients (validated), from this broker's own writers, and as copies of another log.

`PartitionLog` holds the LogAppender and `FutureLog` the FollowerAppender; nothing else comes in.
"""
