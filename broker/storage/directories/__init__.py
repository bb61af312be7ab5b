"""Log directories (`log.dirs`): locks, opening, parallel loading, placement of new logs, deletion, disk failures.

`log_manager` is the only entry for the rest of the broker.
"""
