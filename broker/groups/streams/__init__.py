"""Streams groups (KIP-1071): the members of a Kafka Streams application, to which the broker assigns tasks.

Built as `consumer`: a request becomes records, and the group is what replaying them gives. `topics` decides from the
application's topology which tasks there are and which internal topics they need; `assignor` has the task assignor.
"""
