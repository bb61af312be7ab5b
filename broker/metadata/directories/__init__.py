"""Log directories compared with the metadata: examination before a start, opening, reconciliation.

`examine` decides whether a directory can be opened and writes nothing; `serve`, `doctor dir` and `handover` use it.
"""
