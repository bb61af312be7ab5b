"""Committed offsets: the map, commits and fetches, expiry, loading, and the topic `__consumer_offsets` itself.

`service.OffsetsService` is the door for handlers.
"""
