"""Handlers of the APIs that read and write records: Produce, Fetch, offsets, DeleteRecords, producer ids.

The API table alone imports them. A handler checks a request, calls a partition or service, and returns a response.
"""
