"""One handler per API. Each opens with its contract and knows only the neutral requests, never a dialect.

A handler is called with the session and the request, and returns a response, a `Deferred` of one, a coroutine (only
where metadata changes or a disk may be slow), or None for no answer. It raises BrokerError to refuse a request as a
whole.
"""
