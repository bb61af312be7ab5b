"""Sockets and connections: listeners, framing, dispatch of requests to handlers, and responses in request order.

`node` puts the parts together; handlers import only `session`, `deferred` and `response_frame` from here.
"""
