"""The part of a client's error that two brokers have in common."""

from __future__ import annotations

import re

from tests.interop.clients.driver import DriverError

_VARIABLE = re.compile(r":\d+/\w+|after \d+ms in state \w+|\|\d+\.\d+\|")
_TLS = re.compile(
    r"^(?:_SSL|_TRANSPORT|RuntimeError|kafka): .*(certificate verify failed| alert |remote error: tls: ).*"
)


def essence(error: DriverError) -> str:
    """Return the first line of an error without numbers, and of TLS errors outside Java only the kind.

    librdkafka's code and text depend on whether it notices in its handshake or at its first request; Go and librdkafka
    name the alert, which differs.
    """
    first = str(error).partition("\n")[0]
    return _TLS.sub(r"\1", _VARIABLE.sub("", first))
