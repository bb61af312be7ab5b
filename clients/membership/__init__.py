"""A consumer's membership in a group: the requests to the coordinator, and the assignors of a group leader.

Used by `clients/consumer` only.
"""
