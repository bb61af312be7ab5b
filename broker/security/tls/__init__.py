"""TLS of listeners: what a client's certificate says, and certificates that change while the broker runs.

distinguished_names   subjects as Java prints them
principal_mapper      ssl.principal.mapping.rules
certificates          the contexts of all listeners
listener_context      the context of one listener, rebuilt when its files or properties change
"""
