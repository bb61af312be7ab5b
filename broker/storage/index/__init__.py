"""Indexes of a segment: offset, time and aborted-transaction index, each a file beside the `.log`.

Used by `segment`; all other code goes through a LogSegment.
"""
