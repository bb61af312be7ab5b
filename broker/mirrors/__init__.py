"""Mirrors: topics of another cluster, copied batch by batch at the same offsets, and kept read-only."""
