"""SASL mechanisms as state machines on bytes, for broker and client: no I/O, no clock, no event loop.

exchange   the steps of an exchange, and the interface of a mechanism's server side
"""
