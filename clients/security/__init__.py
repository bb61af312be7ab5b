"""Security of client connections: TLS and SASL, by the properties of Kafka's clients.

settings        the properties, as a value
access_tokens   OAuth access tokens, from a file or an identity provider
tls_context     the TLS context of a client, and failed handshakes
pem             keys and certificates as PEM, for other client libraries
login           the mechanism's client side of one login
authentication  logins over a connection
authority       a certificate authority for development and tests
"""
