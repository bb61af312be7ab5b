"""A standby: a process that copies an active broker's log directories and can take over.

Both sides are here. The active broker's: `active_side`. The standby's: `replica` (the copy), `metadata_copy`,
`replica_logs`, `active_broker` (the client), `control` (the socket of `barnabas standby status`), `takeover` (planned
switch), `fencing` (of the replaced broker), `process` (from the first byte to the broker that serves).
"""
