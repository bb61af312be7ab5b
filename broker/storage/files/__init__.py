"""Files and their names: the `.log` file, checkpoints, markers, durable small files, open-file limits, failpoints.

The lowest layer of storage: it imports nothing else of the log engine, and all other folders may use it.
"""
