"""The records of `__consumer_offsets`, as Kafka's group coordinator writes them: bytes only.

`keys` says whose a record is, `offsets` and `metadata` what it says. A record without a value (a tombstone) takes back
what its key names.
"""
