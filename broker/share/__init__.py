"""Share groups' partitions (KIP-932): what was delivered to a group, and what the group made of it.

`coordinator` keeps the state of share partitions in `__share_group_state`, in Kafka's records. Membership and
assignments of share groups are in `broker/groups/share`.
"""
