"""Groups of the classic protocol (JoinGroup, SyncGroup): a pure state machine, and the service that runs it.

The state machine (`group`, changed by `joining`, `syncing`, `leaving` and `rebalance`) does no I/O: it returns
responses and records. The service `groups.ClassicGroups` carries them out; the rest of the broker uses only the
service.
"""
