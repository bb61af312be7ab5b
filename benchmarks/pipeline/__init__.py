"""Benchmarks of Spark on Barnabas."""
