"""A consumer's membership in a group: the conversation with the coordinator, and the assignors of a group leader.

Used by `clients/consumer` only.
"""
