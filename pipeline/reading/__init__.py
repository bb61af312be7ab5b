"""What reading from a broker and reading segment files share: options, rows, Arrow batches, and ranges of offsets.

Lowest room of the reading side: `segments` and `source` build on it. Everything here runs in the driver or in a task's
Python worker.
"""
