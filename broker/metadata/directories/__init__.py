"""Log directories held against the metadata: examination before a start, opening, reconciliation, read-only use.

`examine` decides whether a directory can be opened and writes nothing; `serve`, `doctor dir` and `handover` use it.
"""
