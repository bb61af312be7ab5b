"""Producer state of a log: duplicate detection, open transactions, snapshots, expiration.

`log` has a `state.ProducerState` per log; cleaning and the offline tools read entries and snapshot files.
"""
