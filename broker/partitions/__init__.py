"""Partitions as the event loop serves them: the async door into a log, long polls, and waits for group commits.

Handlers reach logs only through a Partition from the registry. Nothing here parses requests.
"""
