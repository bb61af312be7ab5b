"""Neutral requests and responses, to which every dialect decodes and from which it encodes.

Handlers use only these types and never a dialect's; a dialect is a codec over them, never a second implementation.
Partition numbers, offsets and epochs are ints; timestamps are milliseconds since 1970; error codes are
`protocol.errors.ErrorCode`; names are str. The types are plain slotted dataclasses, not frozen ones: a one-record
produce builds six of them, and a frozen `__init__` costs three times as much.
"""
