"""The archive: rows to Parquet files by topic, partition and hour, and the manifests that commit them.

Used by the jobs `archive`, `replay` and `snapshot`.
"""
