"""One segment: its files and indexes, appends, lookups, scans, recovery, splits, replacement and deletion.

`log` and `cleaning` work on segments; nothing here imports them.
"""
