"""One segment: its files and indexes, appends, lookups, scans, the decision to roll, splits, replacement and deletion.

`log` and `cleaning` work on segments; nothing here imports them.
"""
