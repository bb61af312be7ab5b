"""Files and their names: the `.log` file, checkpoints, markers, durable small files, open-file limits, failpoints.

The ground floor of storage: nothing here imports the rest of the log engine.
"""
