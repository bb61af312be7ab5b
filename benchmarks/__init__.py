"""Measures the broker beside the limits of the machine: `python -m benchmarks`, or `make bench`.

native/load.c      the load generator: prebuilt frames of any length-prefixed protocol
native/limits.c    memcpy, page-cache write, loopback TCP, sendfile, echo, fdatasync
programs           compiles the two
records            builds the record batches
dialect            the requests of the measurements, in the native dialect
system             starts and stops what is measured; reads its CPU and memory from /proc
page_cache         keeps the page cache full, see there
lines              one function a line of the table
rounds             runs the lines in alternating rounds
report             medians and the page docs/performance.md
"""
