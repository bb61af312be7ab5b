"""Offline tools for a log's files: `barnabas log dump | verify | reindex | truncate`.

Functions and generators that return plain values. Nothing here opens a log as a broker does, and only `reindex` and
`truncation` write. The tools are meant for damaged files: they continue after damage where possible, and report it.
The commands and the pipeline use it; of the broker only `read_only` does, for the lock probe.
"""
