"""Lines, rounds and report of `python -m benchmarks`."""
