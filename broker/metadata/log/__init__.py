"""The metadata log `__cluster_metadata-0`: batches, replay, writer, snapshots, trimming, and Kafka's files beside it.

`store`, `read_only` and `directories` read and write through this folder. It does not access any other log.
"""
