"""Sockets and connections: listeners, framing, dispatch of requests to handlers, and answers in request order.

`node` puts the parts together; handlers import only `session`, `deferred` and `answer` from here.
"""
