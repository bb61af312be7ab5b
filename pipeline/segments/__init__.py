"""Segment files without a broker: finding logs, reading batches and transactions, and facts about segments.

The source plans through `segment_log` and reads through `reading`; jobs read facts. Files are opened read-only, locally
or through pyarrow's file systems.
"""
