"""One handler per API. Each opens with its contract and knows only the neutral requests, never a dialect.

A handler is called with the session and the request, and returns a response, a `Deferred` of one, a coroutine (only
for metadata changes and slow disk reads), or None for no response. It raises BrokerError to refuse a request as a
whole. It keeps no view of the request's records after it returns: the receive buffer is reused.
"""
