"""Client of Kafka's dialect, for what the native dialect does not reach: other clusters, and administrative APIs.

`connection` is one connection, `nodes` the connections to a cluster's brokers, `cluster` its metadata and coordinators.
"""
