"""Committed offsets: the map, commits and deletions, expiry, and the loading of `__consumer_offsets` at a start.

Handlers use `service.GroupOffsets`; `loader` also serves `barnabas doctor`.
"""
