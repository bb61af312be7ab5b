"""Committed offsets of the source's groups, followed in this cluster."""
