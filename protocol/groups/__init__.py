"""Declared records of `__consumer_offsets`, and the codec of consumers' subscriptions and assignments.

`keys` decodes the key of every record; `values`, `consumer_group_values`, `share_group_values` and
`streams_group_values` have the values. A record without a value is a tombstone: it deletes what its key names.
"""
