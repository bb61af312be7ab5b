"""SASL mechanisms as state machines on bytes, for broker and client: no I/O, no clock, no event loop.

exchange         the steps of an exchange, and the interfaces of a mechanism's two sides
plain            PLAIN
scram_keys       keys of SCRAM-SHA-256 and SCRAM-SHA-512
scram_messages   messages of SCRAM
scram_server, scram_client   its two sides
"""
