"""Client quotas (KIP-13, KIP-124, KIP-219, KIP-599): whose requests are too many, and how long their client waits.

tally             the current sample and the sum of a rate
rate              rates over sampled windows, as Kafka computes them
token_bucket      the bucket of controller mutations
entities          which quota applies to a user and a client id
bucket            what one quota has counted for the clients that share it
probe             counters
manager           the buckets of all clients, and the quotas in force
connection_rates  rates of new connections
session_quota     one connection's requests: what they count, and their throttle time
mutation          the quota of one request that creates or deletes partitions
kernels           session_quota for compiled handlers, and their tally
"""
