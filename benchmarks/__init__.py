"""Benchmarks of the broker, beside the limits of the machine: `python -m benchmarks`, or `make bench`.

The modules at the top are commands, each with its own lines: `python -m benchmarks.end_to_end`.

table      lines and report of `python -m benchmarks`, which docs/performance.md shows
pipeline   `python -m benchmarks.pipeline`: Spark on Barnabas
brokers    start and stop the measured systems; read their CPU and memory from /proc
requests   frames that are sent: record batches, and requests in both dialects
runs       what commands share: the C programs, alternating rounds of two brokers, JSON results, the page cache
native     the C programs: load generators, the floor, the machine's limits; their headers have the common parts
results    JSON of measurements that documentation quotes
"""
