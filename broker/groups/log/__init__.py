"""The topic `__consumer_offsets`: its creation, its records, and the log to which groups append.

`group_log.GroupLog` is the only writer. This folder knows nothing of groups and offsets: they register a replay.
"""
