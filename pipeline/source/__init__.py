"""The Spark source: options, ranges of offsets, partitions for tasks, reading from a broker or from segment files.

`data_source` enters through `batch` and `stream`. Everything here runs in the driver or in a task's Python worker.
"""
