"""Groups of the consumer protocol (KIP-848): state replayed from records, heartbeats, reconciliation, migration.

`groups.ConsumerGroups` is the door; a request becomes records, and replaying them changes the group.
"""
