"""Client quotas (KIP-13, KIP-124, KIP-599): what a client exceeds, and how long its connection is muted for it.

rate            rates over sampled windows, as Kafka computes them
token_bucket    the bucket of controller mutations
entities        which quota applies to a user and a client id
"""
