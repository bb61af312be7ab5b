"""A consumer's membership in a group: the requests to the coordinator, and the assignors of a group leader.

Used by `clients/consumer`; `clients/share` has a membership of its own and uses the retries.
"""
