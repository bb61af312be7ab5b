"""Requests for records as C structures: the common form that the compiled parsers of both dialects fill."""
