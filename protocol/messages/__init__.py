"""The neutral requests and responses: what every dialect decodes to and encodes from, one file per API.

A handler sees only these types and never a dialect's; a dialect is a codec over them and never a second implementation.
Partition numbers, offsets and epochs are ints; timestamps are milliseconds since 1970; error codes are
`protocol.errors.ErrorCode`; names are str. The types are plain slotted dataclasses, not frozen ones: a one-record
produce builds six of them, and a frozen `__init__` costs three times as much.
"""
