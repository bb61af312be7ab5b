"""The jobs of `barnabas pipeline`: each has pure transformations of DataFrames and a `run`.

The commands use `record_source` (where a job reads from) and each job's `run`.
"""
