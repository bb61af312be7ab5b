"""The Spark sink: writers for batches and micro-batches, each task's producer, and its identity across replays.

`data_source` enters through `writers`.
"""
