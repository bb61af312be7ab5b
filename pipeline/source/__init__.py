"""The Spark source: batch and streaming readers, pushed-down filters, and reading from a broker.

`data_source` enters through `batch` and `stream`, which read from the broker (`broker`) or from segment files
(`barnabas.pipeline.segments`). Everything here runs in the driver or in a task's Python worker.
"""
