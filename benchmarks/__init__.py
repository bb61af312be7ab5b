"""Benchmarks of the broker, beside the limits of the machine: `python -m benchmarks`, or `make bench`.

native/load.c      the load generator: prebuilt frames of any length-prefixed protocol
native/transactions.c   transactional producers: patches id, epoch and sequence of prebuilt frames
native/limits.c    memcpy, page-cache write, loopback TCP, sendfile, echo, fdatasync
programs           compiles and runs these
records            builds the record batches
dialect            the benchmark's requests, in the native dialect
system             starts and stops the measured broker; reads its CPU and memory from /proc
page_cache         keeps the page cache full; its docstring says why
lines              one function per line of the table
rounds             runs the lines in alternating rounds
report             renders medians and the page docs/performance.md
"""
