"""The producer: batching, partitioning, compression, idempotence, sending and retrying.

The public class is `barnabas.Producer`.
"""
