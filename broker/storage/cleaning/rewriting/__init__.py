"""Compacting one log: the map of its keys, filtering its batches, and replacing its segments.

`cleaner.Cleaner` is the entry. The rest of `cleaning` decides which log is compacted and when; nothing here imports it,
except for its errors.
"""
