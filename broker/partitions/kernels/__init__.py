"""Compiled append to a partition, for compiled handlers. broker/storage/kernels describes the rules of a kernel."""
