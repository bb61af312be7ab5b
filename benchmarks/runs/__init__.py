"""Parts of a run that several benchmarks share: C programs, alternating rounds, results."""
