"""A segment's indexes: offset, time and aborted-transaction index, each a file beside the `.log`.

Used by `segment`; everything else goes through a LogSegment.
"""
