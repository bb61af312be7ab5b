"""Looking at a log's files from outside, without a running broker: `barnabas log dump | verify | reindex | truncate`.

Functions and generators that yield plain values. Nothing here opens a log as a broker does, and nothing changes a byte
but `reindex` and `truncation`, which say so. Damage is what these tools are for: a walk goes on where it can, and says
where it could not.
"""
