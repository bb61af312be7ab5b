"""Groups of the share protocol (KIP-932): state replayed from records, heartbeats, assignment, initialized partitions.

The rest of the broker uses the service `groups.ShareGroups`. A request becomes records (`change`), and replaying them
(`log`) changes the group. The modules are loaded with the first group of the protocol. What is in flight in a partition
is not here but in `broker/share`.
"""
