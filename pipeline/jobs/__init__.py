"""The jobs of `barnabas pipeline`: each a pure transformation of DataFrames, and a `run` around it.

The commands enter through `record_source` (where a job reads from) and each job's `run`.
"""
