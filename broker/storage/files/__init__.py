"""Files and their names: the `.log` file, checkpoints, markers, durable small files, open-file limits, failpoints.

The lowest layer of storage: nothing here imports the rest of the log engine.
"""
