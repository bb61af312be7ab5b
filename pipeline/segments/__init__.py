"""Segment files without a broker: finding logs, reading batches and transactions, and facts about segments.

The source reads records through `place` and `reading`; jobs read facts. Files are opened read-only, locally or through
pyarrow's file systems.
"""
