"""Groups of the consumer protocol (KIP-848): state replayed from records, heartbeats, reconciliation, migration.

The rest of the broker uses the service `groups.ConsumerGroups`. A request becomes records (`change`), and replaying
them (`log`) changes the group. The modules are loaded with the first group of the protocol.
"""
