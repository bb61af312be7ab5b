"""Log directories (`log.dirs`): locks, opening, parallel loading, placement of new logs, deletion, closing.

The rest of the broker uses `log_manager`.
"""
