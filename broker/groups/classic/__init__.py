"""Groups of the classic protocol (JoinGroup, SyncGroup): a pure state machine, and its membership service.

The state machine does no I/O: it returns answers and records. `membership` carries them out.
"""
