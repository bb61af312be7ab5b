"""One share partition: which records a group's members have, and what becomes of them.

`share_partition.SharePartition` is a state machine without I/O or clock. `served.ServedSharePartition` reads the log
for it, writes its changes, and ends its locks.
"""
