"""The compiled loop over the requests in a connection's receive buffer.

A frame kernel serves the plain requests of one API without Python objects for the request and its response. Everything
else it leaves to the dispatcher, unchanged. Without compiled kernels the dispatcher serves every request.
"""
