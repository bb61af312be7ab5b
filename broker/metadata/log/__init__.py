"""The metadata log `__cluster_metadata-0`: batches, replay, snapshots, trimming, and Kafka's files beside it.

`store` and `directories` read and write through this folder; it knows nothing of logs on disk other than its own.
"""
