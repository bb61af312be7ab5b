"""Codecs of the records in `__consumer_offsets` and of consumers' subscriptions and assignments: bytes only.

`keys` decodes the key of every record; `offsets`, `metadata` (classic groups) and `consumer_group_values` decode the
values. A record without a value is a tombstone: it deletes what its key names.
"""
