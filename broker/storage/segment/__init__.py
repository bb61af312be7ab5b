"""One segment: its files and indexes together, appends, lookups, scans, recovery, splits, replacement and deletion.

`log` and `cleaning` work on segments; a segment knows no log.
"""
