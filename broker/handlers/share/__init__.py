"""Handlers of share partitions: fetches, acknowledgements, and the APIs of their states."""
