"""TLS for brokers and clients: key stores, contexts, and a server's transport between a socket and a protocol.

errors          TlsConfigError
settings        the `ssl.*` properties of one end, read from a configuration
key_derivation  limits of the iterations in encrypted keys and PKCS12 files
key_checks      types and sizes of keys that are served
decryption      decryption of keys and PKCS12 files; decryption_process does it within a limit of CPU time
stores          keys, chains and trusted certificates from PEM and PKCS12
suites          names of cipher suites, IANA's and OpenSSL's
contexts        SSLContext from settings and stores
records         TLS records before the handshake's end: completeness and bounds
engine          one end of a TLS connection in memory, without I/O
handshakes      threads that compute handshakes
tls_transport   the transport of a server's connections; clients use the event loop's TLS with these contexts
"""
