"""Connections to brokers: one pipelined connection per broker and purpose, metadata, retries, backoff.

Producer, consumer, admin and group membership are built on it.
"""
