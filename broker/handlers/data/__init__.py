"""Handlers of the APIs that read and write records: one module per API, one callable per request type.

The API table alone imports them. A handler checks a request, calls a partition or service, and returns a response.
"""
